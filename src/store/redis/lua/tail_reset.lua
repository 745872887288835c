
-- KEYS: a key
-- Reply: integer: 1 if it had a state, else 0. Of holds the last fence stays, so that fences grow.
local key = KEYS[1]
if call('TYPE', key).ok ~= 'zset' then
  return {call('DEL', key)}
end
local used, last, shift, longest, front = hold_head(key)
if not used then
  return redis.error_reply(UNKNOWN)
end
call('ZREMRANGEBYSCORE', key, 0, '+inf')
hold_front(key, front, 0, last, shift, longest)
return {used > 0 and 1 or 0}
