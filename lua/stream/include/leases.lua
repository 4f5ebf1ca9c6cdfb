--- Which leases are over: the pending entries that nobody renewed for as long as the claims
-- of their worker say. Redis has them by entry, not by time: they are looked at in turn, so
-- many a call; `reclaim_at` in stats says where to go on, and when the next lease of those
-- before that ends.
--- @include held
--- @include claims

local LEASES_LOOK, LEASES_BYTES = 1000, 262144

-- The job of a pending entry, and the bytes of its record. One that was deleted by hand has
-- no id any more.
local function leases_job(k, row)
  local found = redis.call('XRANGE', k.stream, row[1], row[1])[1]
  if not found then
    return 'lost-' .. row[1], 0
  end
  local record, id = entry_job(found[1], found[2])
  return id, #record
end

local function leases_touch(k)
  held_touch(k)
  k.entry_of, k.consumer_of = k.entry_of or {}, k.consumer_of or {}
  local saved = redis.call('HGET', k.stats, 'reclaim_at') or ''
  local from, ends = string.match(saved, '^(%S+) (%-?%d+)$')
  k.leases_from, k.leases_end = from, tonumber(ends or -1)
  k.leases = pending_range(k, '', from and '(' .. from or '-', '+', LEASES_LOOK)
end

-- leases_over(k, now, lease, limit): deliveries whose lease is over, oldest first, as
-- reclaim_jobs() takes them, so many that their records stay within bounds; and whether
-- there may be more.
local function leases_over(k, now, lease, limit)
  local lost, known, last, bytes = {}, {}, nil, 0
  for i, row in ipairs(k.leases) do
    local worker, generation = consumer_parts(row[2])
    if row[2] ~= FRONT then
      known[worker] = known[worker] or {claims_of(k.claims, worker)}
      local ends = row[3] + (known[worker][3] or tonumber(lease))
      if ends <= now then
        local token = entry_token(row[1], row[4], generation)
        local id, size = leases_job(k, row)
        bytes = bytes + size
        k.entry_of[id], k.consumer_of[id] = row[1], row[2]
        lost[#lost + 1] = {id = id, token = token, charged = not known[worker][1][id .. '\t' .. token],
          text = redis.call('HGET', k.state, id) or held_text(token, worker, row[4], row[3])}
      elseif k.leases_end < 0 or ends < k.leases_end then
        k.leases_end = ends
      end
    end
    if (#lost == tonumber(limit) or bytes > LEASES_BYTES) and i < #k.leases then
      last = row[1]
      break
    end
  end
  if not last and #k.leases == LEASES_LOOK then
    last = k.leases[LEASES_LOOK][1]
  end
  k.leases_last = last
  return lost, last ~= nil
end

-- leases_pull_back(k, now, lease, lease_max): a step of the clock left leases in the
-- future, where Redis says that no time has passed: they begin now.
local function leases_pull_back(k, now)
  for _, row in ipairs(k.leases) do
    if row[2] ~= FRONT and row[3] >= now and entry_there(k, row[1]) then
      redis.call('XCLAIM', k.stream, GROUP, row[2], 0, row[1], 'TIME', claim_time(now), 'JUSTID')
    end
  end
end

-- leases_left(k, now): notes where to go on. ms until the next lease is over; -1: there is
-- none.
local function leases_left(k, now)
  if k.leases_last then
    redis.call('HSET', k.stats, 'reclaim_at', k.leases_last .. ' ' .. digits(k.leases_end))
  elseif k.leases_from then
    redis.call('HDEL', k.stats, 'reclaim_at')
  end
  return k.leases_end < 0 and -1 or math.max(0, k.leases_end - now)
end
