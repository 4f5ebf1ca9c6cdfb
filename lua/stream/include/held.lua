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

-- held_rows(k, looks, consumer): entry -> count of what this consumer has between the first
-- and the last of these entries: one look instead of one for each.
local LOOK_MANY = 8

local function held_rows(k, looks, consumer)
  local low, high, counts = looks[1], looks[1], {}
  for i = 2, #looks do
    local l = looks[i]
    if l[2] < low[2] or l[2] == low[2] and l[3] < low[3] then
      low = l
    elseif l[2] > high[2] or l[2] == high[2] and l[3] > high[3] then
      high = l
    end
  end
  for _, row in ipairs(redis.call('XPENDING', k.stream, GROUP, low[1], high[1], 2 * #looks, consumer)) do
    counts[row[1]] = row[4]
  end
  return counts
end

-- What the tokens say: entries, counts, consumers; and what held_rows() knows of them.
local function held_parts(k, tokens, worker)
  local entries, counts, consumers, looks, n = {}, {}, {}, {}, 0
  for i = 1, #tokens do
    local entry, count, generation, ms, seq = token_parts(tokens[i])
    entries[i], counts[i], consumers[i] = entry or false, count or false, consumer_name(worker, generation)
    if #tokens >= LOOK_MANY and entry and consumers[i] == consumers[1] then
      n = n + 1
      looks[n] = {entry, ms, seq}
    end
  end
  local rows = n >= LOOK_MANY and group_info(k) and held_rows(k, looks, consumers[1]) or {}
  return entries, counts, consumers, rows
end

-- held_look(k, ids, tokens, worker, plain): the states of these jobs, and of each why the
-- delivery does not own it: nil if it does. With `plain`: false if it does and there is
-- nothing more to know: not cancelled, no unique key, keeps no result.
local function held_look(k, ids, tokens, worker, plain)
  local texts, words, there = {}, {}, group_info(k)
  k.entry_of, k.consumer_of, k.unstored = k.entry_of or {}, k.consumer_of or {}, k.unstored or {}
  local some = not k.unnamed and redis.call('EXISTS', k.state, k.ids or k.state) > 0 -- most have neither
  local states = some and redis.call('HLEN', k.state) > 0 and redis.call('HMGET', k.state, unpack(ids))
  local places = some and k.ids and redis.call('HLEN', k.ids) > 0
    and redis.call('HMGET', k.ids, unpack(ids))
  local entries, counts, consumers, rows = held_parts(k, tokens, worker)
  for i, id in ipairs(ids) do
    local entry, consumer, text, count = entries[i], consumers[i], states and states[i], nil
    if entry and there and (not k.ids or (places and places[i] or id) == entry) then
      count = rows[entry]
      if not count or consumer ~= consumers[1] then
        local row = redis.call('XPENDING', k.stream, GROUP, entry, entry, 1, consumer)[1]
        count = row and row[4]
      end
    end
    if not count or count ~= counts[i] then
      words[i] = not_held(k, text, tokens[i], worker, entry)
    else
      k.entry_of[id], k.consumer_of[id] = entry, consumer
      if not text and plain then
        words[i] = false
      elseif not text then
        local at = pending_range(k, '', entry, entry, 1, consumer)[1][3]
        text, k.unstored[id] = held_text(tokens[i], worker, count, at), true
      end
    end
    texts[i] = text
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
