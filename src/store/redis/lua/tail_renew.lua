
-- KEYS: a concurrency key
-- ARGV: doubles fence, units, lease; the time in microseconds or 0
-- Reply: integers: 1 if the hold was live, else 0; the time; the end of its lease, or 0
local key = KEYS[1]
local fence, units, lease = unpack('<ddd', ARGV[1])
local now = clock(ARGV[2])
local used, last, shift, longest, front = hold_head(key)
if not used then
  return redis.error_reply(UNKNOWN)
end
local member = format('%.0f:%.0f', fence, units)
local ends = front and tonumber(call('ZSCORE', key, member) or 0) or 0
if ends - shift <= now then
  return {0, now, 0}
end
ends = max(ends, now + lease + shift)  -- never earlier than it did
call('ZADD', key, text(ends), member)
hold_front(key, front, used, last, shift, max(longest, lease))
local keep = max(tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) - shift, last + 1)
call('PEXPIRE', key, ceil((keep - now) / 1000) + SPARE)
return {1, now, ends - shift}
