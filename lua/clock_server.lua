-- Prelude: the server's own clock, in microseconds. A bucket expires when it would be full again.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function keep(key, value, life)
  return redis.call('SET', key, value, 'PX', (life - life % 1000) / 1000 + 1)
end
