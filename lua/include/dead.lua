--- What the dead jobs of a queue weigh: the counter dead_bytes, for the limits of trim.
-- Their output does not count: it has a bound of its own, and may come after the death.
--- @include clock
--- @include ended

local function dead_size(k, ids)
  local bytes, errors = 0, redis.call('HLEN', k.errors) > 0
  for _, id in ipairs(ids) do
    bytes = bytes + redis.call('HSTRLEN', k.jobs, id)
    if errors then
      bytes = bytes + redis.call('HSTRLEN', k.errors, id)
    end
  end
  return bytes
end

-- dead_in(k, ids): these died; their records and errors are written. Tells who waits.
local function dead_in(k, ids)
  local bytes = dead_size(k, ids)
  if bytes > 0 then
    redis.call('HINCRBY', k.stats, 'dead_bytes', bytes)
  end
  for _, id in ipairs(ids) do
    ended(k, id, 'dead', '')
  end
end

-- dead_out(k, ids): these leave `dead`, and are still stored. What was changed by hand in
-- the meantime makes the sum wrong; it is right again once nothing is dead.
local function dead_out(k, ids)
  local bytes = tonumber(redis.call('HGET', k.stats, 'dead_bytes') or '0') - dead_size(k, ids)
  redis.call('ZREM', k.dead, unpack(ids))
  if bytes < 0 or redis.call('ZCARD', k.dead) == 0 then
    bytes = 0
  end
  redis.call('HSET', k.stats, 'dead_bytes', digits(bytes))
end
