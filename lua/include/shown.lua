--- A job as people see it, whatever stores its queue, also while the queue moves from one
-- engine to the other. k has the keys of both engines.
--- @include claims
--- @include delivery

local LEASE_MS = 15000 -- of a worker whose claims are gone

-- shown_held(k, id, p): state and end of the lease of a delivery, as pending_range() has it.
local function shown_held(k, id, p)
  local _, _, lease = claims_of(k.claims, (consumer_parts(p[2])))
  return delivery_state(k, id, p), p[3] + (lease or LEASE_MS)
end

-- shown(k, id, test): the place of a job, the score that it has there, its state. nil: there
-- is no such job. broken: its record is in no place.
local function shown(k, id, test)
  local entry = entry_of(k, id)
  if entry then
    local p = pending_range(k, test, entry, entry, 1)[1]
    if not p or p[2] == FRONT then
      return 'ready', '', redis.call('HGET', k.state, id) or ''
    end
    local text, ends = shown_held(k, id, p)
    return 'processing', digits(ends), text
  end
  if redis.call('HEXISTS', k.jobs, id) == 0 then
    return nil
  end
  local place, score = 'ready', ''
  for name, key in pairs({processing = k.processing, delayed = k.delayed, dead = k.dead,
                          done = k.kept}) do
    local found = redis.call('ZSCORE', key, id)
    if found then
      place, score = name, digits(math.ceil(tonumber(found)))
    end
  end
  if place == 'ready' and redis.call('EXISTS', k.ready) == 0 and redis.call('EXISTS', k.stream) == 1 then
    return nil -- what stands in `jobs` is no proof of life there
  elseif place == 'ready'
      and (redis.call('HEXISTS', k.tombs, id) == 1 or redis.call('EXISTS', k.ready) == 0) then
    place = 'broken'
  end
  return place, score, redis.call('HGET', k.state, id) or ''
end

-- shown_record(k, id): its record, wherever that is.
local function shown_record(k, id)
  local entry, record = entry_of(k, id)
  return entry and record or redis.call('HGET', k.jobs, id) or ''
end
