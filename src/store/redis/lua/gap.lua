-- Minimum gap, the twin of src/algorithm/min_gap.h.
--
-- An ask: doubles
--   mode, count (0: a peek), gap, code
-- The state is when the next request may come, as in bucket.lua with the gap as its interval; a
-- shorter gap ends no later than this one, a longer one keeps what has passed.
--
-- look returns: fits, write, 1, next, next after the charge, gap, code.
local function gap_load(key, now, gap, code)
  local v = call('GET', key)
  if not v then
    return now, false
  end
  local next, old, _
  if #v == 19 then
    next = tonumber(string.sub(v, 1, 16))
    local name = tonumber(string.sub(v, 17))
    old = name == code and gap or name % 100 * 10 ^ floor(name / 100)
  elseif byte(v) == 1 then
    _, next, _, _, old = unpack('<BI7I5I5d', v)
  else
    return nil
  end
  if next <= now then
    return now, false
  end
  local cut = false
  if old ~= gap then
    next, cut = next - old + gap, true
    if next <= now then
      return now, true
    end
  end
  if next - now > gap then  -- the clock was set back
    return now + gap, true
  end
  return next, cut
end

local function gap_look(key, a, now)
  local mode, count, gap, code = unpack('<dddd', a)
  local next, cut = gap_load(key, now, gap, code)
  if not next then
    return nil
  end
  local fits = mode ~= 4 and (next == now or count == 0)
  local write = cut and 1 or 0
  if count > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
  end
  return fits, write, 1, next, now + gap, gap, code
end

local function gap_save(key, now, s, charged)
  local next = s[4]
  if charged and s[5] > next then
    next = s[5]
  end
  local v
  if s[7] > 0 and next >= 1e15 and next < 9.2e15 then
    v = format('%.0f%03d', next, s[7])
  else
    v = pack('<BI7I5I5d', 1, next, 0, 1, s[6])
  end
  call('SET', key, v, 'PX', ceil((next - now) / 1000) + SPARE)
end

-- A receipt: doubles gap, code, mark: `next` right after the charge. Only the last request is owed
-- anything. Returns 1 or 0, and 0.
local function gap_back(key, a, now)
  local gap, code, mark = unpack('<ddd', a)
  local next = gap_load(key, now, gap, code)
  if not next then
    return nil
  end
  if next == now or next ~= mark then
    return 0, 0
  end
  call('DEL', key)
  return 1, 0
end
