--- What admit() asks and writes where engines differ. An id that begins with a TAB was made
-- up by the client: the job takes the id of its entry in place of it, and the answer says
-- which. Only a job that is ready at once and has no unique key can do so.
--- @include ready
--- @include place
--- @include due
--- @include touch
--- @include places

-- arrivals_ids(k, argv, first, words, has_due): the others keep the id that the client made.
local function arrivals_ids(k, argv, first, words, has_due)
  k.made_up = {}
  for i = first, #argv, words do
    if string.byte(argv[i]) == 9 then
      if argv[i + 3] == '' and not (has_due and argv[i + 4] ~= '') then
        k.made_up[argv[i]] = (i - first) / words
      else
        argv[i] = string.sub(argv[i], 2)
      end
    end
  end
end

-- admit_look(k, has_due): reads what admit_apply() has to know, and may write. That there are
-- no ids, no job outside of the stream and no marker, and that nobody waits for a job, is seen
-- at once: k.empty. k.there: the stream is, which counts once there, and the others twice.
local function admit_look(k, has_due)
  local waiters, state = k.waiters or k.wake, k.state or k.wake
  k.made_up, k.marked = k.made_up or {}, false
  k.len, k.ids_n, k.jobs_n = redis.call('XLEN', k.stream), 0, 0
  k.may_be_new = k.len == 0
  local n = redis.call('EXISTS', k.stream, k.ids, k.ids, k.jobs, k.jobs, k.delayed, k.delayed, k.dead, k.dead,
                       k.kept, k.kept, k.wake, k.wake, waiters, waiters, state, state)
  k.empty, k.there = n < 2, n % 2 == 1
  if not k.empty then
    k.ids_n, k.jobs_n = redis.call('HLEN', k.ids), redis.call('HLEN', k.jobs)
    k.marked = redis.call('LLEN', k.wake) > 0
  end
  if has_due then
    touch('LLEN', k.due)
    touch('ZCARD', k.delayed)
  end
end

-- records_known(k, ids): the records stored under these ids, each false if there is none.
local function records_known(k, ids)
  local records, made_up = {}, k.made_up or {}
  local ids_n = k.ids_n or redis.call('HLEN', k.ids)
  local jobs_n = k.jobs_n or redis.call('HLEN', k.jobs)
  local places = ids_n > 0 and redis.call('HMGET', k.ids, unpack(ids))
  local stored = jobs_n > 0 and redis.call('HMGET', k.jobs, unpack(ids))
  for i, id in ipairs(ids) do
    records[i] = false
    if not made_up[id] then
      local placed = places and places[i] or is_entry(id)
      records[i] = (placed or stored and stored[i]) and record_of(k, id)
      if placed and not records[i] then -- perhaps its entry was deleted by hand
        k.astray = k.astray or {}
        k.astray[#k.astray + 1] = id
      end
    end
  end
  return records
end

-- arrivals_again(k, ids, records, entries): somebody may have chosen an id that is written as
-- an entry's, and that comes up only now: such an entry is added anew. Answers whether one was.
local function arrivals_again(k, ids, records, entries)
  local own, again = {}, false
  for i = 1, #entries do
    own[i] = not ids[i] and entries[i] or ''
  end
  for _, hash in ipairs({k.ids, k.jobs}) do
    local found = redis.call('HMGET', hash, unpack(own))
    for i = 1, #entries do
      while found[i] do
        redis.call('XDEL', k.stream, entries[i])
        entries[i], again = redis.call('XADD', k.stream, '*', 'j', records[i]), true
        found[i] = redis.call('HEXISTS', k.ids, entries[i]) == 1
          or redis.call('HEXISTS', k.jobs, entries[i]) == 1
      end
    end
  end
  return again
end

-- Is this the entry right behind that one?
local function arrivals_follow(before, entry)
  local ms, seq = string.match(before, '^(%d+%-)(%d+)$')
  return entry == ms .. digits(seq + 1)
end

-- arrivals_store(k, d): the records of d and their places. Answers, as notes, the entry of
-- each job whose id it is, where that does not just follow the one of the job before.
-- k.arrived: the entries.
local function arrivals_store(k, d)
  local records, ids, bodies, notes, n, after, made_up = {}, {}, {}, {}, 0, nil, k.made_up or {}
  local waits = #d.delayed > 0 and {}
  local named = waits
  for i = 2, #d.delayed, 2 do
    waits[d.delayed[i]] = true
  end
  for i = 1, #d.records, 2 do
    local id = d.records[i]
    if waits and waits[id] then
      records[#records + 1] = id
      records[#records + 1] = d.records[i + 1]
    else
      n = n + 1
      ids[n], bodies[n] = not made_up[id] and id, d.records[i + 1]
      named = named or ids[n]
    end
  end
  if #records > 0 then
    redis.call('HSET', k.jobs, unpack(records))
    delayed_add(k.delayed, k.due, d.delayed)
  end
  if n == 0 then
    return notes
  end
  local entries = ready_add(k, ids, bodies)
  k.arrived = entries
  local again = next(made_up) and (named or k.ids_n > 0 or k.jobs_n > 0)
    and arrivals_again(k, ids, bodies, entries)
  for i = 1, n do
    if not ids[i] then
      if after ~= i - 1 or again and not arrivals_follow(entries[after], entries[i]) then
        notes[#notes + 1] = digits(made_up[d.ready[i]])
        notes[#notes + 1] = 'IDS'
        notes[#notes + 1] = entries[i]
      end
      after = i
    end
  end
  return notes
end
