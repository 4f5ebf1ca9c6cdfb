--- migrate: a step of moving a queue to the other engine. Called again and again.
--
-- @flags allow-oom
-- @transition ready -> ready
-- @transition ready -> dead
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
-- @key processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key errors HASH id -> last errors
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key waiters HASH id -> who waits for its end
-- @key stats HASH the ledger's counters
-- @key wake LIST the marker that wakes one worker
-- @key stream STREAM a job each, with its group
-- @key ids HASH id -> its entry
-- @key next_ready LIST ids whose record in jobs is left over
-- @key next_stream STREAM the stream as it will be
-- @key next_ids HASH the ids as they will be
-- @key config HASH engine, limits, paused, moving
-- @arg now the test clock, ms; empty: the server's
-- @arg to list or stream
-- @arg who one word: who moves it
-- @arg limit at most so many jobs
-- @arg bytes at most so many of records; at least one job
-- @returns DONE it is stored by that engine
-- @returns RUNS so many deliveries are not over; nothing is handed out meanwhile
-- @returns COPIED so many jobs
-- @returns AGAIN what waited was changed: it is copied again from the start
-- @returns RESUMED somebody resumed the queue: it is not moved
-- @returns FULL the server has no room for the copy
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, number, jobs copied so far.
--
-- The queue is paused, its deliveries end. Then what waits is copied, oldest first, while the
-- old engine's scripts stay the truth; if they do anything to it but append, their counters
-- show it, and the copy begins anew. The step that copies the last one makes the copy the
-- queue. So a move may be left at any point, and goes on with the next call; one that asks
-- for the engine that the queue has takes it back.
--- @include migrate
--- @include ledger
--- @include handing
--- @include places

local function drop_copy()
  redis.call('UNLINK', k.next_stream, k.next_ids)
end

-- The ids that are next, and their records, as far as the sizes allow. Where there are long
-- records they are asked for before.
local function next_ids_of(copied, long)
  local ids, found = {}, redis.call('LRANGE', k.ready, -copied - limit, -copied - 1)
  local size, most = 0, tonumber(bytes)
  for i = #found, 1, -1 do
    size = size + (long and redis.call('HSTRLEN', k.jobs, found[i]) or 0)
    if #ids > 0 and size > most then
      break
    end
    ids[#ids + 1] = found[i]
  end
  local records = #ids > 0 and redis.call('HMGET', k.jobs, unpack(ids)) or {}
  size = 0
  for i = 1, #ids do
    size = size + #(records[i] or '')
    if i > 1 and size > most then
      ids[i], records[i] = nil, nil
    end
  end
  return ids, records
end

-- Jobs whose body is gone die here as they do in reserve: there is nothing to copy. So do
-- second places: an id whose body was gone came in again, and stands here or elsewhere too.
local function bury_lost(ids, records, marks, now)
  local placed, copied = places_of(k, ids), redis.call('HMGET', k.next_ids, unpack(ids))
  local seen, lost = {}, 0
  for i, id in ipairs(ids) do
    local again = seen[id] or copied[i] or placed[id]
    if not marks[i] and (again or not records[i]) then
      redis.call('LREM', k.ready, again and 1 or -1, id)
      lose_body(k, id, redis.call('HGET', k.state, id), now, again)
      lost = lost + 1
    end
    seen[id] = not marks[i]
  end
  ledger_add(k.stats, 'lost_body_ready', lost)
  return lost > 0
end

local function copy(ids, records, marks)
  local entries, n = {}, 0
  for i, id in ipairs(ids) do
    if not marks[i] then
      entries[#entries + 1] = id
      entries[#entries + 1] = redis.call('XADD', k.next_stream, '*', 'j', records[i], 'i', id)
      n = n + 1
    end
  end
  if n > 0 then
    redis.call('HSET', k.next_ids, unpack(entries))
  end
  return n
end

-- The copy is the queue from now on. The list stays as the names of what is left over.
local function switch(m)
  redis.call('RENAME', k.next_stream, k.stream)
  if redis.call('EXISTS', k.next_ids) == 1 then
    redis.call('RENAME', k.next_ids, k.ids)
  end
  if redis.call('EXISTS', k.ready) == 1 then
    redis.call('RENAME', k.ready, k.next_ready)
  end
  redis.call('UNLINK', k.tombs)
  redis.call('HSET', k.config, 'engine', 'stream')
  redis.call('HINCRBY', k.config, 'generation', 1) -- its group is another one
  m.phase, m.copied = 'sweep', nil
  move_write(k, m)
end

-- Decide.
local now = clock(now_arg)
k.paused = true
local word, q, m = move_look(k, k.ready)
if word then
  return {word}
end
touch('HLEN', k.tombs, k.waiters, k.next_ids)
touch('ZCARD', k.processing)
touch('XLEN', k.next_stream)
if to == 'list' then
  if m then
    drop_copy()
    move_end(k, m, redis.call('LLEN', k.ready) > redis.call('HLEN', k.tombs))
  end
  return {'DONE', '0', '0'}
end
if m and not q[2] then
  drop_copy()
  move_forget(k)
  return {'RESUMED'}
end

-- Apply.
if m then
  move_seen(k, q[5], now)
end
m = m or move_begin(k, to, who, q[2], now)
local wait = move_must_wait(redis.call('ZCARD', k.processing))
if wait then
  return wait
end
local signature = move_signature(k, redis.call('HLEN', k.tombs))
if m.copied and (m.signature ~= signature or
                 (m.copied > 0 and redis.call('LINDEX', k.ready, -m.copied) ~= m.last)) then
  m.copied = nil
  move_write(k, m)
  return {'AGAIN', '0', '0'}
end
if not m.copied then
  drop_copy()
  redis.call('XGROUP', 'CREATE', k.next_stream, 'workers', '0', 'MKSTREAM')
  m.copied, m.signature, m.last = 0, signature, ''
end
local ids, records = next_ids_of(m.copied, q[6])
local marks = #ids > 0 and redis.call('HMGET', k.tombs, unpack(ids)) or {}
if #ids > 0 and bury_lost(ids, records, marks, now) then
  m.copied = nil
  move_write(k, m)
  return {'AGAIN', '0', '0'}
end
local n = copy(ids, records, marks)
m.copied, m.last = m.copied + #ids, ids[#ids] or m.last
local sofar = redis.call('XLEN', k.next_stream)
if m.copied == redis.call('LLEN', k.ready) then
  switch(m)
else
  move_write(k, m)
end
return {'COPIED', digits(n), digits(sofar)}
