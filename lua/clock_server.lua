-- Prelude: the server's own clock, in microseconds. A bucket expires when it would be full again.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- One command, so that no value without expiry can be left; SET with PX is the same with more to parse.
local function keep(key, value, life)
  return redis.call('PSETEX', key, (life - life % 1000) / 1000 + 1, value)
end
