
-- KEYS: the key of each receipt, none twice; a record, last: of what was charged under an id and is
--   to be undone, or of this call, which counts once however often it comes
-- ARGV: a letter for each receipt; the time in microseconds or 0; the receipts; with a record: the
--   claim it was charged by (if that stands, the record goes too; else nothing is given back), or
--   '' and the milliseconds for which this call is remembered
-- Reply: integers: the time in microseconds; for each receipt two, see back
local backs = {b = bucket_back, g = gap_back, w = window_back, s = sliding_back, c = sliced_back,
  l = log_back, h = hold_back}
local letters = ARGV[1]
local now = clock(ARGV[2])
local reply = {now}
local record = KEYS[#letters + 1]
local claim, memory = ARGV[#letters + 3], ARGV[#letters + 4]
local stands = true
if memory then
  local told = recall(record)
  if told then
    return told
  end
elseif record then
  stands = string.match(call('GET', record) or '', '%l+$') == claim
  if stands then
    call('DEL', record)
  end
end
for i = 1, #letters do
  local whole, ticks = 0, 0
  if stands then
    whole, ticks = backs[string.sub(letters, i, i)](KEYS[i], ARGV[i + 2], now)
  end
  if not whole then
    return redis.error_reply(UNKNOWN)
  end
  reply[#reply + 1] = whole
  reply[#reply + 1] = ticks
end
if memory then
  remember(record, reply, memory)
end
return reply
