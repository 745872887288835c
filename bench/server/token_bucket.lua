-- A token bucket as it is usually written for Redis: the peer of `./dev bench server`.
-- KEYS[1] the bucket; ARGV[1] its size, ARGV[2] tokens a second. Answers {allowed, tokens left}.
-- Atomic because Redis runs one script at a time.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local size = tonumber(ARGV[1])
local rate = tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or size
local at = tonumber(bucket[2]) or now
tokens = math.min(size, tokens + math.max(0, now - at) * rate)
local allowed = 0
if tokens >= 1 then
  tokens = tokens - 1
  allowed = 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('EXPIRE', KEYS[1], math.ceil(size / rate) + 1)
return {allowed, math.floor(tokens)}
