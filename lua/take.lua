-- Decides runs of requests on token buckets. The twin of core/src/bucket.rs; README.md is the contract.
-- A prelude in front of it defines `now`, in microseconds, and `keep(key, value, life)`.

local FLOOR, STEP = 4503599627370495, 10000000

-- The short path: one key, one limit, one run that takes, and no bucket of other limits.
-- The same arithmetic as below without tables: it saves a quarter of the time of nearly every call.
local rules, runs = ARGV[1], ARGV[2]
if #KEYS == 1 and #rules == 32 and #runs == 32 then
  local value, unpack = redis.call('GET', KEYS[1]), struct.unpack
  local layout, at, units = 1, now, nil
  if value and string.sub(value, 18) == rules then layout, at, units = unpack('<Bdd', value) end
  local cost, count, wait, till = unpack('<dddd', runs)
  if layout == 1 and (units or not value) and count > 0 and wait >= 0 then
    local refill, scale, capacity = unpack('<ddd', rules, 9)
    local gone, ahead, stepped = now - at, 0, false
    if gone < 0 then
      if gone < -STEP then stepped = true else ahead = -gone end
      gone = 0
    end
    if units and refill * gone < capacity - units then
      units = units + refill * gone
    else
      units, ahead = capacity, 0
    end
    local price, taken = cost * scale, 0
    if till > 0 and now > till then
      taken = -1
    elseif cost == 0 then
      taken = count
    elseif price <= capacity then
      local most = units
      if wait > ahead then most = most + math.min(refill * (wait - ahead), FLOOR) end
      if count * price <= most then taken = count elseif most >= price then taken = (most - most % price) / price end
      if taken > 0 then
        units = units - taken * price
        keep(KEYS[1], struct.pack('<Bddc32', 1, now + ahead, units, rules), ahead + (capacity - units) / refill)
      elseif stepped then
        keep(KEYS[1], struct.pack('<Bddc32', 1, now, units, rules), (capacity - units) / refill)
      end
    end
    return {now, ahead, taken, units}
  end
end

-- Microseconds until a limit is full again.
local function fill(units, refill, capacity)
  return math.ceil((capacity - units) / refill)
end

-- Units of one scale in units of another, rounded down: a long division, for the product may pass 2^53.
local function rescaled(units, from, to)
  if from == to then return units end
  local whole = math.floor(units / from)
  local part, quotient, rest, bit = units - whole * from, 0, 0, 4503599627370496
  while bit >= 1 do
    rest, quotient = rest * 2, quotient * 2
    if rest >= from then rest, quotient = rest - from, quotient + 1 end
    if math.floor(to / bit) % 2 == 1 then
      rest = rest + part
      if rest >= from then rest, quotient = rest - from, quotient + 1 end
    end
    bit = bit / 2
  end
  return math.max(whole * to + quotient, -FLOOR)
end

-- A stored value as a caller with other limits sees it: a state with the caller's limits first, then the limits that
-- it does not know, which stay as they are; the rules of those, how long they take to fill, and how long all do.
local function adopted(value, rule, n)
  local m = (#value - 9) / 40
  local old = {struct.unpack('<Bd' .. string.rep('d', 5 * m), value)}
  local row, of, life = {}, {}, 0
  for i = 1, m do
    row[i] = m + 4 * i - 1
    of[old[row[i]]] = i
    life = math.max(life, fill(old[i + 2], old[row[i] + 1], old[row[i] + 3]))
  end
  if now - old[2] >= life then return nil end
  local state = {1, old[2]}
  for i = 1, n do
    local j = of[rule[4 * i - 3]]
    if j then
      state[i + 2] = rescaled(old[j + 2], old[row[j] + 2], rule[4 * i - 1])
      of[rule[4 * i - 3]] = nil
    else
      state[i + 2] = rule[4 * i]
    end
  end
  local others, slowest = '', 0
  for i = 1, m do
    if of[old[row[i]]] then
      state[#state + 1] = old[i + 2]
      others = others .. string.sub(value, 8 * m + 32 * i - 22, 8 * m + 32 * i + 9)
      slowest = math.max(slowest, fill(old[i + 2], old[row[i] + 1], old[row[i] + 3]))
    end
  end
  return state, others, slowest, life
end

local reply, r = {now, nil, nil, nil, nil, nil, nil, nil}, 1
for k = 1, #KEYS do
  local key, rules, runs = KEYS[k], ARGV[2 * k - 1], ARGV[2 * k]
  local n = #rules / 32
  local doubles = string.rep('d', n)
  local rule = {struct.unpack('<' .. doubles .. doubles .. doubles .. doubles, rules)}
  local value = redis.pcall('GET', key)

  -- state: the layout, the time, the units of the caller's limits and of others; slowest: how long the others take
  -- to fill; life: how long all take that are stored, where that may be needed.
  local state, others, slowest, life, foreign = nil, '', 0, nil, false
  if value then
    if type(value) == 'table' then
      if k == 1 then return value end
      foreign = true
    elseif string.sub(value, 10 + 8 * n) == rules and #value == 9 + 40 * n then
      state = {struct.unpack('<Bd' .. doubles, value)}
      state[n + 3] = nil -- unpack also returns where it stopped
      foreign = state[1] ~= 1
    elseif string.byte(value) == 1 and #value > 9 and (#value - 9) % 40 == 0 then
      state, others, slowest, life = adopted(value, rule, n)
    else
      foreign = true
    end
  end
  if not state then
    state, others, slowest = {1, now}, '', 0
    for i = 1, n do state[i + 2] = rule[4 * i] end
  end

  local gone, ahead, stepped = now - state[2], 0, false
  if gone < 0 then
    if gone < -STEP then stepped = true else ahead = -gone end
    gone = 0
  end
  if stepped and not life then
    life = 0
    for i = 1, n do life = math.max(life, fill(state[i + 2], rule[4 * i - 2], rule[4 * i])) end
  end
  local full = slowest == 0
  for i = 1, n do
    local units, capacity, grown = state[i + 2], rule[4 * i], rule[4 * i - 2] * gone
    if grown < capacity - units then
      state[i + 2], full = units + grown, false
    else
      state[i + 2] = capacity
    end
  end
  if full then ahead = 0 end

  -- none: there is no bucket (yet, or any more), so that there is nothing to give back to.
  local written, met, none, at = false, false, full and not life, r + 1
  r = at
  for from = 1, #runs, 32 do
    local cost, count, wait, till = struct.unpack('<dddd', runs, from)
    local taken = count
    if foreign then
      taken = 0
    elseif till > 0 and now > till then
      taken = -1
    elseif cost == 0 or count == 0 then
      taken = count
    elseif count < 0 then
      met = true
      if not none then
        written, none = true, slowest == 0
        for i = 1, n do
          local units, capacity, back = state[i + 2], rule[4 * i], -count * cost * rule[4 * i - 1]
          if back < capacity - units then
            state[i + 2], none = units + back, false
          else
            state[i + 2] = capacity
          end
        end
      end
      if none then ahead = 0 end
    elseif wait < 0 then
      written, met, none = true, true, false
      for i = 1, n do
        local units, lowest = state[i + 2], -math.min(rule[4 * i - 2] * (-1 - wait), FLOOR)
        state[i + 2] = math.max(units - count * cost * rule[4 * i - 1], math.min(lowest, units))
      end
    else
      local never = false
      for i = 1, n do
        local price, most = cost * rule[4 * i - 1], state[i + 2]
        if price > rule[4 * i] then never = true end
        if wait > ahead then most = most + math.min(rule[4 * i - 2] * (wait - ahead), FLOOR) end
        if taken * price > most then taken = (most - most % price) / price end
      end
      if never or taken < 0 then taken = 0 end
      if not never then met = true end
      if taken > 0 then
        written, none = true, false
        for i = 1, n do state[i + 2] = state[i + 2] - taken * cost * rule[4 * i - 1] end
      end
    end
    r = r + 1
    reply[r] = taken
  end

  reply[at] = foreign and -1 or ahead
  local longest = slowest
  for i = 1, n do
    local units = state[i + 2]
    local life = (rule[4 * i] - units) / rule[4 * i - 2]
    if life > longest then longest = life end
    reply[r + i] = units
  end
  r = r + n

  if written then
    if longest > 0 then
      state[2] = now + ahead
      if others ~= '' then doubles = string.rep('d', #state - 2) end
      keep(key, struct.pack('<Bd' .. doubles, unpack(state)) .. rules .. others, ahead + longest)
    elseif value then
      redis.call('DEL', key)
    end
  elseif stepped and met then
    keep(key, struct.pack('<Bd', 1, now) .. string.sub(value, 10), life)
  end
end
return reply
