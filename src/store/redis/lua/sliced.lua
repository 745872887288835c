-- Sliced window, the twin of src/algorithm/sliced_window.h: the k + 1 slices of which any instant
-- lies in (now - window, now] are those of now and the k before it.
--
-- An ask: doubles
--   mode, cost, limit, count_max, slice in microseconds, slices (k)
--
-- The state: \4, slice:double, limit:4, slices:2, newest slice:7, sum:6, then k + 1 counters of 5
-- bytes, the oldest first. A call reads the counters that fall out since the last one, which makes
-- one a slice; a denial looks for the slice whose end makes room.
--
-- look returns: fits, write, 4, the slice that is charged, sum before the charge, the slice whose
-- end makes room for the cost or -1, the newest slice charged before or -1, [counters, added,
-- slice, slices, limit, count_max].
local function sliced_count(counters, i)
  return (unpack('<I5', counters, i * 5 - 4))
end

-- The newest slice, the sum, the counters, whether the state was cut. still: slices that have
-- passed stay, so that what is written back is as old as it was.
local function sliced_load(key, now, slice, slices, most, still)
  local id = floor(now / slice)
  local v = call('GET', key)
  if not v then
    return id, 0, nil, false
  end
  if byte(v) ~= 4 then
    return nil
  end
  local _, old, _, old_slices, newest, sum = unpack('<BdI4I2I7I6', v)
  local counters = string.sub(v, 29)
  local cut = false
  local changed = old ~= slice or old_slices ~= slices
  local here = old == slice and id or floor(now / old)
  if newest * old - now > old * old_slices then  -- the clock was set back by more than a window
    newest, cut = here, true
  end
  if here > newest and (changed or not still) then
    local gone = min(here - newest, old_slices + 1)
    for i = 1, gone do
      sum = sum - sliced_count(counters, i)
    end
    counters = string.sub(counters, gone * 5 + 1) .. string.rep('\0', gone * 5)
    newest = here
  end
  if changed then  -- the units in use begin anew in these slices
    sum = min(sum, most)
    return id, sum, string.rep('\0', slices * 5) .. pack('<I5', sum), true
  end
  return newest, sum, counters, cut
end

local function sliced_look(key, a, now)
  local mode, cost, limit, most, slice, slices = unpack('<dddddd', a)
  local id, sum, counters, cut = sliced_load(key, now, slice, slices, most)
  if not id then
    return nil
  end
  local asked = cost
  if mode == 2 and cost > 0 then
    cost = min(cost, max(limit - sum, 0))
  end
  local fits = mode ~= 4 and (asked == 0 or (cost > 0 and sum + cost <= limit))
  local added = 0
  local write = cut and 1 or 0
  if cost > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    added = min(cost, most)
  end
  local room, last = -1, -1
  if sum > 0 then
    local i = slices + 1
    while sliced_count(counters, i) == 0 do
      i = i - 1
    end
    last = id - (slices + 1 - i)
  end
  if not fits and mode ~= 4 then
    local excess = sum + added + (mode == 2 and 1 or asked) - limit
    local i = 1
    while i <= slices do
      local count = counters and sliced_count(counters, i) or 0
      if count >= excess then
        break
      end
      excess = excess - count
      i = i + 1
    end
    room = id - (slices + 1 - i)
  end
  return fits, write, 4, id, sum, room, last, counters, added, slice, slices, limit, most
end

local function sliced_put(key, now, id, sum, counters, slice, slices, limit)
  call('SET', key, pack('<BdI4I2I7I6', 4, slice, limit, slices, id, sum) .. counters, 'PX',
    ceil(((id + 1 + slices) * slice - now) / 1000) + SPARE)
end

local function sliced_save(key, now, s, charged)
  local id, sum, counters, slice, slices = s[4], s[5], s[8], s[10], s[11]
  counters = counters or string.rep('\0', slices * 5 + 5)
  if charged then
    local count = sliced_count(counters, slices + 1)
    local after = min(count + s[9], s[13])
    counters = string.sub(counters, 1, slices * 5) .. pack('<I5', after)
    sum = sum + after - count
  end
  sliced_put(key, now, id, sum, counters, slice, slices, s[12])
end

-- A receipt: doubles units, limit, count_max, slice, slices, the slice that was charged. Returns
-- the units, and 0.
local function sliced_back(key, a, now)
  local units, limit, most, slice, slices, mark = unpack('<dddddd', a)
  local id, sum, counters = sliced_load(key, now, slice, slices, most, true)
  if not id then
    return nil
  end
  local i = slices + 1 - (id - mark)
  if not counters or i < 1 or i > slices + 1 or mark < floor(now / slice) - slices then
    return 0, 0
  end
  local count = sliced_count(counters, i)
  local back = min(count, units)
  if back > 0 then
    counters = string.sub(counters, 1, i * 5 - 5) .. pack('<I5', count - back) ..
      string.sub(counters, i * 5 + 1)
    sliced_put(key, now, id, sum - back, counters, slice, slices, limit)
  end
  return back, 0
end
