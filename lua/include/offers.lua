--- Offers: an idle worker that begins to wait says so, and which call it would make. The one job
-- that comes in while none waits is handed to the worker that waits longest, as if that had made
-- the call, in the step that stores the job; the marker brings it to whom it wakes.
--
-- offers says since when each waits. The rest stands in claims, behind the lease:
--   offers CALL UNTIL KEEP|TYPES    UNTIL: ms
--   handed                          the call was made for it; nobody has heard of it yet
-- An offer is void once its worker made that call itself.
--- @include clock
--- @include record
--- @include handing

local OFFERS_MAX = 8 -- void ones that one call removes

-- Has it an offer that stands? One of the future does not: the clock was set back.
local function offer_read(k, worker, now)
  local saved = redis.call('HGET', k.claims, worker)
  local since, lease, call, untl, keep, types =
    string.match(saved or '', '^%d+ (%d+) (%d+) offers (%d+) (%d+) (%d+)|([^\n]*)\n')
  return call and tonumber(since) <= now and now < tonumber(untl)
    and {worker = worker, call = call, lease = tonumber(lease), keep = keep, types = types, knows = {}}
end

-- Is the job for this worker, and in no way special? Then r says all that its state has to.
local function offer_fits(r, record)
  local kind, options = string.match(record, HEADER)
  if not kind or string.find(options, ' max_deliveries=', 1, true)
     or r.types ~= '' and not type_known(r, kind) then
    return false
  end
  r.keep = string.match(options, ' keep=(%d+)') or r.keep
  return true
end

-- The state of the job's first delivery.
local function offer_state(r, token, now)
  return token .. ' ' .. r.worker .. ' - - ' .. r.keep .. ' 1 0 0 0 0 ' .. digits(now) .. ' '
    .. DELIVERIES_MAX .. '|'
end

-- offers_find(k, record, now): the call that this job is handed to, if there is one: worker,
-- call, lease, keep; and whose offers are over then. If the job is not for who waits longest,
-- none gets it so: that one hears of it by the marker.
local function offers_find(k, record, now)
  local over = {}
  for i = 0, OFFERS_MAX - 1 do
    local worker = redis.call('ZRANGE', k.offers, i, i)[1]
    local r = worker and offer_read(k, worker, now)
    if not worker or r and not offer_fits(r, record) then
      return nil, over
    end
    over[#over + 1] = worker
    if r then
      return r, over
    end
  end
  return nil, over
end

-- The marker brings the job of this call.
local function offers_tell(k, r, id, text, record)
  redis.call('LPUSH', k.wake, r.call .. '\n' .. id .. '\0' .. text .. '\n' .. record)
end

-- offers_hand(k, r, id, token, text, record, now): r got this job. The marker says so.
local function offers_hand(k, r, id, token, text, record, now)
  r.mark = ' handed'
  claims_write(k, r, now, id .. '\t' .. token .. '\t0\n')
  offers_tell(k, r, id, text, record)
end
