--- The deliveries of the stream engine: a pending entry that belongs to the worker's
-- consumer, with the count that the token says. A job that was handed out once and needs
-- nothing at its end has no state; it gets one when its lease is renewed first, or when it
-- goes elsewhere. A state of a job that is held was written for that delivery.
-- k.entry_of and k.consumer_of: of the ids that were looked at and are held.
--- @include state
--- @include ready

-- The state of a delivery that has none stored.
local function held_text(token, worker, count, started)
  return token .. ' ' .. worker .. ' - - 0 ' .. digits(count) .. ' 0 0 0 0 ' .. digits(started)
    .. ' ' .. DELIVERIES_MAX .. '|'
end

local function not_held(k, text, token, worker, entry)
  local had, by = string.match(text or '', STATE_HELD)
  if had == token and by == worker then
    return 'ANSWERED'
  elseif text or entry and entry_there(k, entry) then
    return 'STALE'
  end
  return 'GONE'
end

-- held_look(k, ids, tokens, worker, plain): the states of these jobs, and of each why the
-- delivery does not own it: nil if it does. With `plain`: false if it does and there is
-- nothing more to know: not cancelled, no unique key, keeps no result.
local function held_look(k, ids, tokens, worker, plain)
  local texts, words = {}, {}
  k.entry_of, k.consumer_of, k.unstored = k.entry_of or {}, k.consumer_of or {}, k.unstored or {}
  local there = group_info(k)
  local states = redis.call('HLEN', k.state) > 0 and redis.call('HMGET', k.state, unpack(ids))
  local places = k.ids and redis.call('HLEN', k.ids) > 0 and redis.call('HMGET', k.ids, unpack(ids))
  for i, id in ipairs(ids) do
    local entry, count, generation = token_parts(tokens[i])
    local consumer, row = consumer_name(worker, generation), nil
    if entry and there and (not k.ids or (places and places[i] or id) == entry) then
      row = redis.call('XPENDING', k.stream, GROUP, entry, entry, 1, consumer)[1]
    end
    texts[i] = states and states[i]
    if not row or row[4] ~= count then
      words[i] = not_held(k, texts[i], tokens[i], worker, entry)
    else
      k.entry_of[id], k.consumer_of[id] = entry, consumer
      if not texts[i] and plain then
        words[i] = false
      elseif not texts[i] then
        local at = pending_range(k, '', entry, entry, 1, consumer)[1][3]
        texts[i], k.unstored[id] = held_text(tokens[i], worker, count, at), true
      end
    end
  end
  return texts, words
end

-- held_renew(k, ids, texts, now, lease): those of the ids that are held go on so long.
-- The lease is the worker's, as its claims say. An entry that was deleted by hand is not
-- renewed: it is reclaimed, and booked, when its lease is over.
local function held_renew(k, ids, texts, now)
  local of, states = {}, {}
  for i, id in ipairs(ids) do
    local consumer = k.consumer_of[id]
    of[consumer] = of[consumer] or {}
    if entry_there(k, k.entry_of[id]) then
      of[consumer][#of[consumer] + 1] = k.entry_of[id]
    end
    if k.unstored[id] then
      states[#states + 1] = id
      states[#states + 1] = texts[i]
    end
  end
  for consumer, entries in pairs(of) do
    if #entries > 0 then
      entries[#entries + 1] = 'TIME'
      entries[#entries + 1] = claim_time(now)
      entries[#entries + 1] = 'JUSTID'
      redis.call('XCLAIM', k.stream, GROUP, consumer, 0, unpack(entries))
    end
  end
  if #states > 0 then
    redis.call('HSET', k.state, unpack(states))
  end
end

-- held_gone(k, id): is the body of a held job gone?
local function held_gone(k, id)
  return not entry_there(k, k.entry_of[id])
end

-- held_touch(k): reads what the next three may write.
local function held_touch(k)
  ready_touch(k)
end

-- held_finish(k, ids): these jobs are over.
local function held_finish(k, ids)
  k.entries = nil
  local entries, named = {}, {}
  for i, id in ipairs(ids) do
    entries[i] = k.entry_of[id]
    if entries[i] ~= id then
      named[#named + 1] = id
    end
  end
  if #entries > 0 then
    redis.call('XACK', k.stream, GROUP, unpack(entries))
    redis.call('XDEL', k.stream, unpack(entries))
  end
  if #named > 0 then
    redis.call('HDEL', k.ids, unpack(named))
  end
end

-- held_store(k, ids): these are held no more and go elsewhere; their records are in `jobs`.
local function held_store(k, ids)
  for _, id in ipairs(ids) do
    local found = redis.call('XRANGE', k.stream, k.entry_of[id], k.entry_of[id])[1]
    redis.call('HSET', k.jobs, id, found and entry_job(found[1], found[2]) or STUB)
  end
  held_finish(k, ids)
end

-- held_front(k, ids): these are taken next, in the order of their entries. Answers how
-- many: one whose entry was deleted by hand stays where it is, until it is reclaimed.
local function held_front(k, ids)
  local entries = {}
  for _, id in ipairs(ids) do
    local entry = k.entry_of[id]
    if entry_there(k, entry) then
      entries[#entries + 1] = entry
    end
  end
  local n = #entries
  if n > 0 then
    entries[n + 1] = 'JUSTID'
    redis.call('XCLAIM', k.stream, GROUP, FRONT, 0, unpack(entries))
  end
  return n
end

-- held_sort(list): entries have their order already.
local function held_sort()
end
