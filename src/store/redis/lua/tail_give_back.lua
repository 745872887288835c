
-- KEYS: the key of each receipt, none twice
-- ARGV: a letter for each receipt; the time in microseconds or 0; the receipts
-- Reply: integers: the time in microseconds; for each receipt two, see back
local backs = {b = bucket_back, g = gap_back, w = window_back, s = sliding_back, c = sliced_back,
  l = log_back, h = hold_back}
local letters = ARGV[1]
local now = clock(ARGV[2])
local reply = {now}
for i = 1, #letters do
  local whole, ticks = backs[string.sub(letters, i, i)](KEYS[i], ARGV[i + 2], now)
  if not whole then
    return redis.error_reply(UNKNOWN)
  end
  reply[#reply + 1] = whole
  reply[#reply + 1] = ticks
end
return reply
