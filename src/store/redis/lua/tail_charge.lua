
-- KEYS: the key; with an id: what was charged under it
-- ARGV: the ask; with an id or a test's time: the milliseconds for which the id is remembered, the
--   time in microseconds or 0; with an id, if it may be undone: a claim
-- Reply: integers
--   1 fits, 0 does not; 2 more: this is what was answered to this id before
--   the time in microseconds
--   the state before the charge: see look
-- or -1 and the time: the clock is outside of the calendar periods that were sent.
local key, id = KEYS[1], KEYS[2]
if id then
  local reply = recall(id, ARGV[4])
  if reply then
    return reply
  end
end
local now = clock(ARGV[3])
local s = {look(key, ARGV[1], now)}
if s[1] == nil then
  return redis.error_reply(UNKNOWN)
elseif s[1] == -1 then
  return {-1, now}
end
local charged = s[2] == 2
if s[2] > 0 then
  save(key, now, s, charged)
elseif not s[1] and call('PTTL', key) == -1 then
  save(key, now, s, false)
end
local reply = {s[1] and 1 or 0, now}
for i = 1, s[3] do
  reply[i + 2] = s[i + 3]
end
if id and charged then
  remember(id, reply, ARGV[2], ARGV[4])
end
return reply
