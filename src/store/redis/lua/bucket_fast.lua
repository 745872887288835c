-- The usual case, before anything else is set up: one charge that may be denied, no id, an interval
-- with a short name, and a state that was written under it, or none. What it leaves, the rest of
-- the script decides; the arithmetic is that of bucket_look. %d is exact where Lua's is of 64 bits.
if #ARGV[1] == 32 and not ARGV[2] then
  local call, key = redis.call, KEYS[1]
  local _, inc, tol, code = struct.unpack('<dddd', ARGV[1])
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local v = call('GET', key)
  local tat = now
  if v then
    local x, y, z = string.byte(v, 17, 19)
    if #v ~= 19 or x * 100 + y * 10 + z ~= code + 5328 then
      tat = nil
    else
      tat = string.sub(v, 1, 16) + 0
      if tat < now then
        tat = now
      end
    end
  end
  if tat and tat - now <= 2 * tol and now >= 1e15 and now < 4e15 and tol < 1e15 then
    local debt = tat - now + inc
    if debt <= tol then
      call('SET', key, string.format('%d%03d', now + debt, code), 'PX',
        string.format('%d', debt / 1000 + 1001))
      return {1, now, tat}
    elseif call('PTTL', key) ~= -1 then
      return {0, now, tat}
    end
  end
end

