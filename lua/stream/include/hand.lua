--- hand_over(k, d, r, now): the one job of d becomes an entry that its worker has at once.
--- @include offers
--- @include ledger
--- @include arrivals
--- @include group

-- How many wait that were never handed out: 0, 1, more; none: something else waits as well, or
-- there is no group. Only who knows that may go on: what the group was not given yet would be
-- passed over. As many entries as are pending are no proof, where somebody deleted one that runs.
local function hand_waiting(k)
  local group = group_again(k)
  if group and (group.pending == 0 or #redis.call('XPENDING', k.stream, GROUP, '-', '+', 1, FRONT) == 0) then
    return k.len == 0 and 0
      or #redis.call('XRANGE', k.stream, '(' .. group['last-delivered-id'], '+', 'COUNT', 2)
  end
end

-- Does no job wait?
local function hand_idle(k)
  return hand_waiting(k) == 0
end

-- Does just one job wait?
local function hand_one(k)
  return hand_waiting(k) == 1
end

-- Reads what is written below.
local function hand_touch(k)
  k.stated = not k.empty and redis.call('HLEN', k.state) > 0
end

local function hand_over(k, d, r, now)
  local notes = arrivals_store(k, d)
  local entry, id = k.arrived[1], d.records[1]
  local token = entry_token(entry, 1, k.generation)
  local text = offer_state(r, token, now)
  id = k.made_up[id] and entry or id
  ledger_add(k.stats, 'deliveries', 1)
  redis.call('XCLAIM', k.stream, GROUP, consumer_name(r.worker, k.generation), 0, entry, 'TIME', claim_time(now),
             'RETRYCOUNT', 1, 'FORCE', 'JUSTID', 'LASTID', entry)
  if r.keep ~= '0' or k.stated then -- in place of what one left whose entry was deleted
    redis.call('HSET', k.state, id, text)
  end
  offers_hand(k, r, id, token, text, d.records[2], now)
  return notes
end
