--- Which leases are over: `processing` by score.
--- @include held
--- @include claims

local function leases_touch(k)
  held_touch(k)
end

-- leases_over(k, now, lease, limit): deliveries whose lease is over, oldest first, as
-- reclaim_jobs() takes them; and whether there may be more.
local function leases_over(k, now, _, limit)
  local ids = redis.call('ZRANGEBYSCORE', k.processing, '-inf', now, 'LIMIT', 0, limit)
  local lost, known = {}, {}
  if #ids == 0 then
    return lost, false
  end
  local texts = redis.call('HMGET', k.state, unpack(ids))
  for i = 1, #ids do
    local token, worker = string.match(texts[i] or '', STATE_HELD)
    local ahead = false
    if worker then
      known[worker] = known[worker] or claims_of(k.claims, worker)
      ahead = known[worker][ids[i] .. '\t' .. token]
    end
    lost[i] = {id = ids[i], text = texts[i], charged = not ahead, token = token or '0'}
  end
  held_sort(lost)
  return lost, #ids == tonumber(limit)
end

-- leases_pull_back(k, now, lease, lease_max): a step of the clock left leases far in the
-- future: their workers' own length is given to them from now on.
local function leases_pull_back(k, now, lease, lease_max)
  local far = redis.call('ZREVRANGEBYSCORE', k.processing, '+inf', '(' .. digits(now + lease_max),
                         'LIMIT', 0, 100)
  for _, id in ipairs(far) do
    local worker = string.match(redis.call('HGET', k.state, id) or '', '^%S+ (%S+) ') or '-'
    local _, _, own = claims_of(k.claims, worker)
    redis.call('ZADD', k.processing, 'XX', now + (own or lease), id)
  end
end

-- leases_left(k, now): ms until the next one is over; -1: there is none.
local function leases_left(k, now)
  local head = redis.call('ZRANGE', k.processing, 0, 0, 'WITHSCORES')[2]
  return head and math.max(0, tonumber(head) - now) or -1
end
