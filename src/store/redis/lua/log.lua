-- Sliding log, the twin of src/algorithm/sliding_log.h: a ring of the stamps of the newest `limit`
-- units.
--
-- An ask: doubles
--   mode, cost, limit, window
--
-- The state: \5, capacity:4, head:4, count:4, fallen:4, shift:7, then the ring: stamps of 7 bytes.
-- A stamp less the shift is an instant in microseconds: a clock that is set back by more than a
-- window moves all of them by one number. The oldest stamps are looked for in steps that double and
-- then by halving, as in C++; a charge writes its own stamps and the head.
--
-- look returns: fits, write, 5, count before the charge, the instant of what is charged, that of
-- the unit whose end makes room or -1, the newest instant before or -1, the stamp of what is
-- charged, [capacity, head, fallen, shift, added, window].
local HEAD = '<BI4I4I4I4I7'

local function log_stamp(key, capacity, head, i)
  local place = head + i
  if place >= capacity then
    place = place - capacity
  end
  return (unpack('<I7', call('GETRANGE', key, 24 + place * 7, 30 + place * 7)))
end

-- The stamps in order, the oldest first.
local function log_line(key, capacity, head, count)
  local first = min(count, capacity - head)
  local line = first == 0 and '' or
    call('GETRANGE', key, 24 + head * 7, 23 + (head + first) * 7)
  if count > first then
    line = line .. call('GETRANGE', key, 24, 23 + (count - first) * 7)
  end
  return line
end

-- A line as the whole state, the time it lives unchanged.
local function log_rewrite(key, capacity, line, fallen, shift)
  call('SET', key, pack(HEAD, 5, capacity, 0, #line / 7, min(fallen, 16777215), shift) .. line,
    'KEEPTTL')
end

-- Capacity, head, count, fallen, shift, newest instant, whether the state was cut.
local function log_load(key, now, limit, window)
  local h = call('GETRANGE', key, 0, 23)
  if h == '' then
    return limit, 0, 0, 0, 0, -1, false
  end
  if byte(h) ~= 5 then
    return nil
  end
  local _, capacity, head, count, fallen, shift = unpack(HEAD, h)
  if capacity ~= limit then  -- a changed limit keeps every stamp that it has room for
    local line = log_line(key, capacity, head, count)
    if count > limit then
      line = string.sub(line, (count - limit) * 7 + 1)
      fallen, count = fallen + count - limit, limit
    end
    log_rewrite(key, limit, line, fallen, shift)
    capacity, head = limit, 0
  end
  if count == 0 then
    return capacity, 0, 0, 0, shift, -1, false
  end
  local newest = log_stamp(key, capacity, head, count - 1) - shift
  local cut = false
  if newest - now > window then
    shift, newest, cut = shift + newest - now, now, true
  end
  local edge = max(now, newest) + shift - window  -- stamps up to here have left the window
  local gone, step = 0, 1
  while gone + step <= count and log_stamp(key, capacity, head, gone + step - 1) <= edge do
    gone = gone + step
    step = step * 2
  end
  local left = min(step - 1, count - gone)
  while left > 0 do
    local half = floor(left / 2)
    if log_stamp(key, capacity, head, gone + half) <= edge then
      gone, left = gone + half + 1, left - half - 1
    else
      left = half
    end
  end
  if gone > 0 then
    head, count, fallen = head + gone, count - gone, 0
    if head >= capacity then
      head = head - capacity
    end
  end
  return capacity, head, count, fallen, shift, count > 0 and newest or -1, cut
end

local function log_look(key, a, now)
  local mode, cost, limit, window = unpack('<dddd', a)
  local capacity, head, count, fallen, shift, newest, cut = log_load(key, now, limit, window)
  if not capacity then
    return nil
  end
  local at = max(now, newest)
  local asked = cost
  if mode == 2 and cost > 0 then
    cost = min(cost, max(limit - count, 0))
  end
  local fits = mode ~= 4 and (asked == 0 or (cost > 0 and count + cost <= limit))
  local added = 0
  local write = cut and 1 or 0
  if cost > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    added = min(cost, limit)
  end
  local room = -1
  if not fits and mode ~= 4 then
    local excess = count + added + (mode == 2 and 1 or asked) - limit
    room = excess <= count and log_stamp(key, capacity, head, excess - 1) - shift or at
  end
  return fits, write, 5, count, at, room, newest, at + shift, capacity, head, fallen, shift, added,
    window
end

local function log_save(key, now, s, charged)
  local count, at, capacity, head, fallen, shift = s[4], s[5], s[9], s[10], s[11], s[12]
  local added, window = charged and s[13] or 0, s[14]
  local stamps = string.rep(pack('<I7', at + shift), added)
  local ttl = ceil((at + window - now) / 1000) + SPARE
  if count == 0 then
    call('SET', key, pack(HEAD, 5, capacity, 0, added, 0, shift) .. stamps, 'PX', ttl)
    return
  end
  local dropped = max(count + added - capacity, 0)
  head, count, fallen = head + dropped, count - dropped, min(fallen + dropped, 16777215)
  if head >= capacity then
    head = head - capacity
  end
  if added > 0 then
    local place = head + count
    if place >= capacity then
      place = place - capacity
    end
    local first = min(added, capacity - place)
    call('SETRANGE', key, 24 + place * 7, string.sub(stamps, 1, first * 7))
    if added > first then
      call('SETRANGE', key, 24, string.sub(stamps, first * 7 + 1))
    end
  end
  call('SETRANGE', key, 0, pack(HEAD, 5, capacity, head, count + added, fallen, shift))
  call('PEXPIRE', key, ttl)
end

-- A receipt: doubles units, limit, window, the stamp. Takes out up to so many units of that stamp;
-- units that fell out of the ring take their place, dated as the oldest in it. Returns the units,
-- and 0.
local function log_back(key, a, now)
  local units, limit, window, mark = unpack('<dddd', a)
  local capacity, head, count, fallen, shift = log_load(key, now, limit, window)
  if not capacity then
    return nil
  end
  if count == 0 then
    return 0, 0
  end
  local line = log_line(key, capacity, head, count)
  local i = count  -- stamps are in order, so those of the mark lie together
  while i > 0 and unpack('<I7', line, i * 7 - 6) > mark do
    i = i - 1
  end
  local back = 0
  while back < units and i - back > 0 and unpack('<I7', line, (i - back) * 7 - 6) == mark do
    back = back + 1
  end
  if back > 0 then
    local again = min(back, fallen)
    line = string.rep(string.sub(line, 1, 7), again) .. string.sub(line, 1, (i - back) * 7) ..
      string.sub(line, i * 7 + 1)
    log_rewrite(key, capacity, line, fallen - again, shift)
  end
  return back, 0
end
