-- Fixed windows of every start and calendar quotas, the twin of src/algorithm/fixed_window.h.
--
-- An ask: doubles
--   mode, cost, limit, count_max, family, start, window
--   and, by start: 0 epoch or per key: the key's shift; 1 first hit: nothing;
--   2 calendar: four instants that bound the three periods around the caller's clock
-- family: equal for windows that cut time alike.
--
-- The state: \2, family:double, limit:4, count:5, end of the window:7, in microseconds.
--
-- look returns: fits, write, 2, end, count before the charge, [count after, family, limit]; or -1
-- if the clock is in none of the calendar periods that were sent.
local function window_end(a, now, start, window)
  if start == 1 then
    return now + window
  elseif start == 0 then
    local shift = unpack('<d', a, 57)
    return (floor((now + shift) / window) + 1) * window - shift
  end
  local b0, b1, b2, b3 = unpack('<dddd', a, 57)
  if now < b0 or now >= b3 then
    return nil
  end
  return now < b1 and b1 or now < b2 and b2 or b3
end

-- End, count, whether the state was cut.
local function window_load(key, now, current, window, family, limit, most)
  local v = call('GET', key)
  if not v then
    return current, 0, false
  end
  if byte(v) ~= 2 then
    return nil
  end
  local _, old, old_limit, count, ends = unpack('<BdI4I5I7', v)
  if ends <= now or count == 0 then
    return current, 0, false
  end
  if old ~= family then
    return current, min(floor(count * limit / old_limit), most), true
  end
  if ends > current + window then  -- the clock was set back by more than a window
    return current, min(count, most), true
  end
  return ends, min(count, most), false
end

local function window_look(key, a, now)
  local mode, cost, limit, most, family, start, window = unpack('<ddddddd', a)
  local current = window_end(a, now, start, window)
  if not current then
    return -1
  end
  local ends, count, cut = window_load(key, now, current, window, family, limit, most)
  if not ends then
    return nil
  end
  local asked = cost
  if mode == 2 and cost > 0 then
    cost = min(cost, max(limit - count, 0))
  end
  local fits = mode ~= 4 and (asked == 0 or (cost > 0 and count + cost <= limit))
  local write = cut and 1 or 0
  local after = count
  if cost > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    after = max(count, min(count + cost, most))
  end
  return fits, write, 2, ends, count, after, family, limit
end

local function window_put(key, now, ends, count, family, limit)
  call('SET', key, pack('<BdI4I5I7', 2, family, limit, count, ends), 'PX',
    ceil((ends - now) / 1000) + SPARE)
end

local function window_save(key, now, s, charged)
  window_put(key, now, s[4], charged and s[6] or s[5], s[7], s[8])
end

-- A receipt: doubles units, limit, family, the end of the window that was charged. A window that
-- has ended gives nothing back. Returns the units, and 0.
local function window_back(key, a, now)
  local units, limit, family, mark = unpack('<dddd', a)
  local v = call('GET', key)
  if not v then
    return 0, 0
  end
  if byte(v) ~= 2 then
    return nil
  end
  local _, old, old_limit, count, ends = unpack('<BdI4I5I7', v)
  if old ~= family or ends ~= mark or ends <= now then
    return 0, 0
  end
  local back = min(count, units)
  if back > 0 then
    window_put(key, now, ends, count - back, old, old_limit)
  end
  return back, 0
end
