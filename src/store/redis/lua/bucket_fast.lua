-- The usual case, before anything else is set up: one charge that may be denied, no id, an interval
-- with a short name, and a state that was written under it, or none. What it leaves, the rest of
-- the script decides; the arithmetic is that of bucket_look. %d is exact where Lua's is of 64 bits.
--
-- A state in its own phase (bucket.lua) lives long enough for any charge of that phase, so that
-- there one addition is all that is written, and the time to live stays as it is.
--
-- ARGV: increment, tolerance, code, as digits; the code as three of them; if anything is fourth,
--   the long reply
-- Reply, short: the debt before the charge, in microseconds; -1 less that debt if it does not fit
-- Reply, long: 1 or 0, the time, the TAT before the charge
local a = ARGV
if a[3] and #a[1] < 17 then
  local call, key, code = redis.call, KEYS[1], a[3]
  local inc, tol = a[1] + 0, a[2] + 0
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local v = call('GET', key)
  local mark = tol > 66000000 and 0 or now % 134217728 < 67108864 and 2.7e15 or 5.4e15
  local debt, ours = 0, false
  if v then
    local sub = string.sub
    debt = nil
    if sub(v, 17) == code then
      local tat = sub(v, 1, 16) - mark
      if mark > 0 and tat >= 1e15 and tat < 3.7e15 then
        ours = true
      else
        tat = tat + mark
        tat = tat >= 6.4e15 and tat - 5.4e15 or tat >= 3.7e15 and tat - 2.7e15 or tat
      end
      debt = tat - now
    end
  end
  if debt and debt <= 2 * tol and now >= 1e15 and now + tol < 3.7e15 then
    local owed, format = debt > 0 and debt or 0, string.format
    local fits = owed + inc <= tol
    if fits and ours then
      call('INCRBY', key, debt >= 0 and a[1] .. '000' or format('%d000', inc - debt))
    elseif fits then
      local tat = now + owed + inc
      local ends = mark > 0 and now - now % 67108864 + 134217728 or tat + 1001000
      call('SET', key, format('%d%s', tat + mark, code), 'PXAT', format('%d', ends / 1000))
    end
    if fits or call('PTTL', key) ~= -1 then
      if a[4] then
        return {fits and 1 or 0, now, now + owed}
      end
      return fits and owed or -1 - owed
    end
  end
  a[1], a[2], a[3] = struct.pack('<dddd', 0, inc, tol, code), nil, nil
end

