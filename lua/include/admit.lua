--- How jobs come in: shared by enqueue and schedule.
--- @include clock
--- @include ledger
--- @include arrivals
--- @include touch
--- @include due_time
--- @include unique_holder
--- @include unique_next
--- @include channel
--- @include order
--- @include long
--- @include defaults
--- @include hand

local PAYLOAD_MAX = 1048576

-- Is the stored record what this call would store? All but the time it came.
local function same_record(record, head, tail)
  local stored_head, stored_tail = string.match(record, '^(%d+ %S+) %d+(.*)$')
  return stored_head == head and defaults_cut(stored_tail) == tail
end

-- What a call needs seldom, but then perhaps for each of its jobs: made once.
--- @rare admit_holder
local function admit_holder()
  return unique_holder
end

--- @rare admit_known
local function admit_known(k)
  return function(record, head, tail, id, is_stored)
    return same_record(record, head, tail) and 'EXISTS' or 'OTHER', is_stored and place_of(k, id) or 'ready'
  end
end

-- A job that takes the key over from one that runs waits for its end, unless it has a time
-- of its own. Answers until when at most.
--- @rare admit_park
local function admit_park(k, d, key, before, due, now)
  touch('LLEN', k.due)
  touch('ZCARD', k.delayed)
  if due then
    d.unlink[#d.unlink + 1] = '=' .. key
    return nil
  end
  d.unique[#d.unique + 1] = '=' .. key
  d.unique[#d.unique + 1] = before
  return now + PARK_MS
end

-- An ordered job waits in delayed for the one before it in its line, if there is one.
--- @rare admit_order
local function admit_order(k, d, key, id, due)
  d.order, d.lines = d.order or {}, d.lines or {} -- key, id, ...; keys whose line is not empty
  order_touch(k)
  local waits = d.lines[key] or redis.call('HEXISTS', k.order, key) == 1
  d.lines[key] = true
  d.order[#d.order + 1], d.order[#d.order + 2] = key, id
  return waits and order_parked(due)
end

-- admit_decide(k, argv, first, words, has_due, now, later): looks at each job. It
-- reads every key that may be written, so that a foreign key of another type stops
-- the script before its first write.
-- Items are id, head, tail, unique[, due].
local function admit_decide(k, argv, first, words, has_due, max_bytes, now, later)
  local ids, notes, d = {}, {}, {records = {}, ready = {}, delayed = {}}
  local seen, keys = {}, {}
  for i = first, #argv, words do
    ids[#ids + 1] = argv[i]
  end
  -- The loop is what bulk enqueue spends its time in: no length and no number is
  -- computed twice.
  local records, ready, stored, waiting, stamp = d.records, d.ready, 0, 0, ' ' .. digits(now)
  local known = records_known(k, ids)
  local placed, holder_of, known_as
  for i = 1, #ids do
    local at = first + (i - 1) * words
    local id, head, tail, spec = argv[at], argv[at + 1], argv[at + 2], argv[at + 3]
    local word, detail, parked
    local record = known[i] or seen[id]
    placed = placed or not record and places_of_new(k, ids)
    if record then
      known_as = known_as or admit_known(k)
      word, detail = known_as(record, head, tail, id, known[i])
    elseif placed[id] then
      word, detail = 'OTHER', placed[id]
    elseif #tail - string.find(tail, '\n', 1, true) > max_bytes then
      word, detail = 'BIG', digits(max_bytes)
    elseif spec ~= '' then
      holder_of = holder_of or admit_holder()
      local holder, key, window, before, left, order = holder_of(k, spec, id, now)
      holder = holder or (keys[key] and keys[key] ~= id and keys[key])
      if holder then
        word, detail = 'UNIQUE', holder
      else
        if key ~= '-' then
          keys[key] = id
          d.unique, d.unlink, d.windows = d.unique or {}, d.unlink or {}, d.windows or {}
          d.unique[#d.unique + 1] = key
          d.unique[#d.unique + 1] = id
        end
        if order ~= '' then
          parked = admit_order(k, d, order, id, has_due and due_time(argv[at + 4], now, later))
        elseif before then
          parked = admit_park(k, d, key, before, has_due and due_time(argv[at + 4], now, later), now)
        end
        if left and not before then -- of one that is gone, which waited perhaps
          d.unlink[#d.unlink + 1] = '=' .. key
        end
        if window > 0 then
          d.windows[#d.windows + 1] = now + window
          d.windows[#d.windows + 1] = key
        end
      end
    end
    if word then
      notes[#notes + 1] = digits(i - 1)
      notes[#notes + 1] = word
      notes[#notes + 1] = detail
    else
      record = head .. stamp .. tail
      seen[id] = record
      if k.defaults then
        record = head .. stamp .. defaults_add(tail, k.defaults)
      end
      records[stored + 1], records[stored + 2] = id, record
      stored = stored + 2
      d.long = d.long or #record > LONG
      local due = parked or has_due and due_time(argv[at + 4], now, later)
      if due then
        d.delayed[#d.delayed + 1] = due
        d.delayed[#d.delayed + 1] = id
      else
        waiting = waiting + 1
        ready[waiting] = id
      end
    end
  end
  return d, notes, #ids
end

-- One job that comes alone, has no key and no order, and is not long, can be handed to a worker
-- that waits. Answers the call that gets it, and whose offers are over.
--- @rare admit_hand
local function admit_hand(k, d, now)
  if not hand_idle(k) then
    return nil, {}
  end
  hand_touch(k)
  return offers_find(k, d.records[2], now)
end

--- @rare admit_hand_over
local function admit_hand_over(k, d, r, now)
  return hand_over(k, d, r, now)
end

-- stats is the one key that was not read: it comes first. Answers what arrivals_store()
-- does.
local function admit_apply(k, d, paused, now)
  if #d.records == 0 then
    return
  end
  local can_wake = #d.ready > 0 and not paused and not k.marked and not k.let_in
  local r, over = nil, {}
  if can_wake and k.offers and #d.records == 2 and not d.unique and not d.order and not d.long then
    r, over = admit_hand(k, d, now)
  end
  ledger_add(k.stats, 'enqueued', #d.records / 2)
  ledger_add(k.stats, 'scheduled', #d.delayed / 2)
  if #over > 0 then
    redis.call('ZREM', k.offers, unpack(over))
  end
  if r then
    return admit_hand_over(k, d, r, now)
  end
  local more = arrivals_store(k, d)
  if d.order then
    order_join(k, d.order)
  end
  if d.unique then
    redis.call('HSET', k.unique, unpack(d.unique))
    if #d.unlink > 0 then
      redis.call('HDEL', k.unique, unpack(d.unlink))
    end
    if #d.windows > 0 then
      redis.call('ZADD', k.windows, unpack(d.windows))
    end
  end
  if can_wake and not k.let_in then
    redis.call('LPUSH', k.wake, '1') -- the rule of wake_worker(): ready > 0 is certain
  end
  return more
end

-- The notes of a call as one word, "pos:WORD,pos:WORD=detail" or "-", and back.
local function notes_pack(notes)
  if #notes == 0 then
    return '-'
  end
  local out = {}
  for i = 1, #notes, 3 do
    out[#out + 1] = notes[i] .. ':' .. notes[i + 1]
      .. (notes[i + 1] == 'IDS' and '=' .. notes[i + 2] or '')
  end
  return table.concat(out, ',')
end

--- @rare notes_unpack
local function notes_unpack(text)
  local notes = {}
  for at, word, detail in string.gmatch(text, '(%d+):(%u+)=?([^,]*)') do
    notes[#notes + 1] = at
    notes[#notes + 1] = word
    notes[#notes + 1] = detail == '' and '-' or detail
  end
  return notes
end

-- admit(k, a, argv, first, words, has_due): the whole of enqueue and of schedule.
-- a: now and later of the clock, channel, number, mark; look: what else there is to be read
-- before the first write, answers the word that ends the call. Answers the reply.
local function admit(k, a, argv, first, words, has_due)
  local now, later = a.now, a.later
  local q = redis.call('HMGET', k.config, 'engine', 'paused', 'payload_max', 'long', 'retry', 'backoff',
                       'keep_progress', 'moving', 'generation')
  k.generation = q[9] ~= '1' and q[9] or nil
  k.paused, k.defaults, k.moving = q[2], defaults_of(q[5], q[6], q[7]), q[8]
  local made = 0
  if q[1] ~= ENGINE then
    if q[1] then
      return {'ENGINE', q[1]}
    end
    if redis.call('EXISTS', k.stats, k.jobs, k.ready or k.stream) > 0 then
      return {'CORRUPT', ''}
    end
    made = 1
  end
  arrivals_ids(k, argv, first, words, has_due)
  admit_look(k, has_due)
  local no = a.look and a.look()
  if no then
    return {no}
  end
  local saved = redis.call('HGET', k.producers, a.channel)
  local count = (#argv - first + 1) / words
  local name = string.gsub(argv[first], '^\t', '') -- the same to every engine
  local word, packed = 'APPLY', nil
  if a.channel ~= '' then
    word, packed = channel_word(saved, tonumber(a.number), name, count)
  end
  if word == 'BEFORE' then
    -- Whoever repeats it may do so again: it is not idle.
    redis.call('HSET', k.producers, a.channel,
               (string.gsub(saved, '^(%d+) %d+', '%1 ' .. digits(now))))
    return {'BEFORE', '0', unpack(notes_unpack(packed))}
  elseif word == 'CLASH' then
    return {'CLASH', '0'}
  elseif word == 'LATE' then
    return {'LATE', '0'}
  end
  local max_bytes = tonumber(q[3] or '') or PAYLOAD_MAX
  local d, notes = admit_decide(k, argv, first, words, has_due, max_bytes, now, later)

  if made == 1 then
    if k.offers then -- of a queue that was not there: nothing else has read them
      touch('ZCARD', k.offers)
    end
    redis.call('HSET', k.config, 'engine', ENGINE, 'made', a.mark)
  end
  for _, note in ipairs(admit_apply(k, d, q[2], now) or {}) do
    notes[#notes + 1] = note
  end
  if d.long and not q[4] then
    redis.call('HSET', k.config, 'long', '1')
  end
  if a.channel ~= '' then
    redis.call('HSET', k.producers, a.channel, a.number .. ' ' .. digits(now) .. ' '
      .. digits(count) .. ' ' .. notes_pack(notes) .. ' ' .. name)
  end
  return {word == 'GAP' and 'GAP' or 'OK', digits(made), unpack(notes)}
end
