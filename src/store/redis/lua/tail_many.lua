
-- All or nothing: every ask is looked at, and only if all fit are they charged. Those apart, and
-- those that count always or take up to, are charged by themselves.
--
-- KEYS: a key for each ask, none twice; with an id: what was charged under it, last
-- ARGV: a letter for each ask (b g w s c l h), a capital one if it is apart; the milliseconds for
--   which the id is remembered or 0; the time in microseconds or 0; the asks; with an id, if it
--   may be undone: a claim
-- Reply: integers
--   1: all but those apart fit, else 0; 2 more: this is what was answered to this id before
--   the time in microseconds
--   for each ask: 1 fits, 0 does not; how many numbers follow; the state before the charge
-- or -1 and the time: the clock is outside of the calendar periods that were sent.
local looks = {b = bucket_look, g = gap_look, w = window_look, s = sliding_look, c = sliced_look,
  l = log_look, h = hold_look}
local saves = {b = bucket_save, g = gap_save, w = window_save, s = sliding_save, c = sliced_save,
  l = log_save, h = hold_save}
local letters = ARGV[1]
local count = #letters
local id = KEYS[count + 1]
if id then
  local reply = recall(id, ARGV[count + 4])
  if reply then
    return reply
  end
end
local now = clock(ARGV[3])
local all = true
local found = {}
for i = 1, count do
  local letter = string.sub(letters, i, i)
  local kind = string.lower(letter)
  local s = {looks[kind](KEYS[i], ARGV[i + 3], now)}
  if s[1] == nil then
    return redis.error_reply(UNKNOWN)
  elseif s[1] == -1 then
    return {-1, now}
  end
  s.save, s.apart = saves[kind], letter ~= kind
  if not s.apart and not s[1] then
    all = false
  end
  found[i] = s
end
local reply = {all and 1 or 0, now}
local charged = false
for i = 1, count do
  local s = found[i]
  local take = s[2] == 2 and (all or s.apart or unpack('<d', ARGV[i + 3]) ~= 0)
  if take or s[2] == 1 or (not s[1] and call('PTTL', KEYS[i]) == -1) then
    s.save(KEYS[i], now, s, take)
  end
  charged = charged or take
  reply[#reply + 1] = s[1] and 1 or 0
  reply[#reply + 1] = s[3]
  for j = 1, s[3] do
    reply[#reply + 1] = s[j + 3]
  end
end
if id and charged then
  remember(id, reply, ARGV[2], ARGV[count + 4])
end
return reply
