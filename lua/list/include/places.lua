--- When somebody deleted records by hand (or Redis evicted them), an id without a
-- record may still stand somewhere, and come in again as a new job. The number of
-- records tells at once whether that can be: only then is anything looked at.

-- bodies_missing(k): are there more places than records?
local function bodies_missing(k)
  return redis.call('HLEN', k.jobs) ~= redis.call('LLEN', k.ready) - redis.call('HLEN', k.tombs)
    + redis.call('ZCARD', k.processing) + redis.call('ZCARD', k.delayed)
    + redis.call('ZCARD', k.dead) + redis.call('ZCARD', k.kept)
end

-- places_of(k, ids): id -> the set it stands in, of those that stand in one.
local function places_of(k, ids)
  local found = {}
  for place, key in pairs({processing = k.processing, delayed = k.delayed, dead = k.dead,
                           done = k.kept}) do
    local scores = redis.call('ZMSCORE', key, unpack(ids))
    for i = 1, #ids do
      if scores[i] then
        found[ids[i]] = place
      end
    end
  end
  return found
end

-- places_of_new(k, ids): where ids without a record stand all the same. A few are looked
-- for at once; for many it pays to know first that no record is missing.
local PLACES_FEW = 4

--- @rare places_of_new
local function places_of_new(k, ids)
  if k.empty or redis.call('EXISTS', k.processing, k.delayed, k.dead, k.kept) == 0
     or #ids > PLACES_FEW and not bodies_missing(k) then
    return {}
  end
  return places_of(k, ids)
end
