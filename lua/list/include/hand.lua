--- hand_over(k, d, r, now): the one job of d is stored as one that runs: it never waits.
--- @include offers
--- @include ledger

-- Does no job wait?
local function hand_idle(k)
  return k.empty or k.ready_n == 0
end

-- Does just one job wait?
local function hand_one(k)
  return redis.call('LLEN', k.ready) == 1 and redis.call('HLEN', k.tombs) == 0
end

-- Reads what is written below. That the id is new was asked of processing.
local function hand_touch(k)
  if not k.empty then
    redis.call('HLEN', k.state)
  end
end

local function hand_over(k, d, r, now)
  local id, record = d.records[1], d.records[2]
  local token = digits(redis.call('HINCRBY', k.stats, 'tokens', 1))
  local text = offer_state(r, token, now)
  redis.call('HSET', k.jobs, id, record)
  redis.call('ZADD', k.processing, digits(now + r.lease), id)
  redis.call('HSET', k.state, id, text)
  ledger_add(k.stats, 'deliveries', 1)
  offers_hand(k, r, id, token, text, record, now)
  return nil
end
