--- A job in `delayed` that waits for the end of another of its order key (order.lua) has
-- the score PARKED, or PARKED + its own due time.
local PARKED = 1000000000000000 -- ms; later than any time: the year 33658

-- order_parked(at): the score of one that waits for another, and then for `at`, or nil.
local function order_parked(at)
  return PARKED + math.ceil(at or 0)
end

-- order_key(word): of what a record or a state says of a job's keys (record.lua), or nil.
local function order_key(word)
  return string.match(word, '^[^=]+=%a*=(.+)$')
end

-- order_link(k, id): its order key, the id before it, the id behind it; nothing: in no line.
local function order_link(k, id)
  local link = redis.call('HGET', k.order, '=' .. id)
  return string.match(link or '', '^([^\t]+)\t([^\t]*)\t([^\t]*)$')
end
