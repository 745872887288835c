-- The usual case, before anything else is set up: one charge that may be denied, no id, an interval
-- with a short name, and a state that was written under it, or none. What it leaves, the rest of
-- the script decides; the arithmetic is that of bucket_look. %d is exact where Lua's is of 64 bits.
--
-- ARGV: increment, tolerance, code, as digits; the code as three of them
-- Reply: 1 or 0, the time, the TAT before the charge
if ARGV[3] and #ARGV[1] < 17 then
  local call, key, code, format = redis.call, KEYS[1], ARGV[3], string.format
  local tol = ARGV[2] + 0
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local v = call('GET', key)
  local tat = now
  if v then
    tat = string.sub(v, 17) == code and string.sub(v, 1, 16) + 0
    if tat and tat < now then
      tat = now
    end
  end
  if tat and tat - now <= 2 * tol and now >= 1e15 and now < 4e15 and tol < 1e15 then
    local debt = tat - now + ARGV[1]
    if debt <= tol then
      call('SET', key, format('%d%s', now + debt, code), 'PX', format('%d', debt / 1000 + 1001))
      return {1, now, tat}
    elseif call('PTTL', key) ~= -1 then
      return {0, now, tat}
    end
  end
  ARGV[1], ARGV[2], ARGV[3] = struct.pack('<dddd', 0, ARGV[1], tol, code), nil, nil
end

