-- The token bucket as it is usually written for Redis, to compare with: a hash, floating-point tokens and seconds.
-- Written as well as that form allows: one HMGET, one HSET, no write on a denial, which changes nothing.
-- ARGV: tokens a second, capacity, cost. Reply: admitted or not, whole tokens left, milliseconds to wait.
local rate, capacity, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local held = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = capacity
if held[1] then
  tokens = math.min(capacity, tonumber(held[1]) + math.max(0, now - tonumber(held[2])) * rate)
end
if tokens < cost then
  return {0, math.floor(tokens), math.ceil((cost - tokens) / rate * 1000)}
end
tokens = tokens - cost
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 1000))
return {1, math.floor(tokens), 0}
