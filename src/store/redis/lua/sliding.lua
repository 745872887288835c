-- Sliding window counter, the twin of src/algorithm/sliding_window.h: admit iff
-- floor(previous * left / window) + current + cost <= limit.
--
-- An ask: doubles
--   mode, cost, limit, count_max, window
--
-- The state: \3, window:double, limit:4, previous:4, current:4, end of the current window:7.
--
-- look returns: fits, write, 3, end, previous, current before the charge, [current after, window,
-- limit].

-- a * b as high * 2^36 + low, low < 2^36. REQUIRES: a < 2^33, b < 2^53; both whole.
local function wide(a, b)
  local ah, bh = floor(a / 65536), floor(b / 1048576)
  local al, bl = a - ah * 65536, b - bh * 1048576
  local m, n = al * bh, ah * bl
  local mh, nh = floor(m / 65536), floor(n / 1048576)
  local low = (m - mh * 65536) * 1048576 + (n - nh * 1048576) * 65536 + al * bl
  local carry = floor(low / 68719476736)
  return ah * bh + mh + nh + carry, low - carry * 68719476736
end

-- Whether a * b < c * d, exactly; a and c < 2^33, b and d < 2^53.
local function less(a, b, c, d)
  local x, y = a * b, c * d
  if x < 9e15 and y < 9e15 then
    return x < y
  end
  local xh, xl = wide(a, b)
  local yh, yl = wide(c, d)
  return xh < yh or (xh == yh and xl < yl)
end

-- floor(count * left / window), exactly.
local function weigh(count, left, window)
  local q = floor(count * left / window)
  if count * left < 9e15 then
    return q
  end
  if less(count, left, q, window) then
    return q - 1
  elseif not less(count, left, q + 1, window) then
    return q + 1
  end
  return q
end

-- End, previous, current, weight of previous, whether the state was cut.
local function sliding_load(key, now, window, limit, most)
  local ends = (floor(now / window) + 1) * window
  local v = call('GET', key)
  if not v then
    return ends, 0, 0, 0, false
  end
  if byte(v) ~= 3 then
    return nil
  end
  local _, old, old_limit, previous, current, stored = unpack('<BdI4I4I4I7', v)
  if old ~= window then
    local used = 0
    if now < stored then
      used = min(weigh(previous, min(stored - now, old), old), previous) + current
    elseif now < stored + old then
      used = weigh(current, stored + old - now, old)
    end
    return ends, 0, min(floor(used * limit / old_limit), most), 0, true
  end
  previous, current = min(previous, most), min(current, most)
  local ahead = stored - ends
  if ahead == 0 then
    return ends, previous, current, weigh(previous, ends - now, window), false
  elseif ahead == -window then
    return ends, current, 0, weigh(current, ends - now, window), false
  elseif ahead < 0 then
    return ends, 0, 0, 0, false
  elseif ahead == window then  -- for this key it is that window's first instant
    return stored, previous, current, previous, false
  end
  return ends, previous, current, weigh(previous, ends - now, window), true
end

local function sliding_look(key, a, now)
  local mode, cost, limit, most, window = unpack('<ddddd', a)
  local ends, previous, current, weight, cut = sliding_load(key, now, window, limit, most)
  if not ends then
    return nil
  end
  local used = weight + current
  local asked = cost
  if mode == 2 and cost > 0 then
    cost = min(cost, max(limit - used, 0))
  end
  local fits = mode ~= 4 and (asked == 0 or (cost > 0 and used + cost <= limit))
  local write = cut and 1 or 0
  local after = current
  if cost > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    after = max(current, min(current + cost, most))
  end
  return fits, write, 3, ends, previous, current, after, window, limit
end

local function sliding_put(key, now, ends, previous, current, window, limit)
  call('SET', key, pack('<BdI4I4I4I7', 3, window, limit, previous, current, ends), 'PX',
    ceil((ends + window - now) / 1000) + SPARE)
end

local function sliding_save(key, now, s, charged)
  sliding_put(key, now, s[4], s[5], charged and s[7] or s[6], s[8], s[9])
end

-- A receipt: doubles units, limit, window, the end of the window that was charged. Returns the
-- units, and 0.
local function sliding_back(key, a, now)
  local units, limit, window, mark = unpack('<dddd', a)
  local v = call('GET', key)
  if not v then
    return 0, 0
  end
  if byte(v) ~= 3 then
    return nil
  end
  local _, old, old_limit, previous, current, ends = unpack('<BdI4I4I4I7', v)
  if old ~= window or ends ~= mark or ends <= now then
    return 0, 0
  end
  local back = min(current, units)
  if back > 0 then
    sliding_put(key, now, ends, previous, current - back, old, old_limit)
  end
  return back, 0
end
