--- replace: gives a job that has not started a new record, or a done one a new life.
--
-- @transition ready -> ready
-- @transition ready -> delayed
-- @transition delayed -> delayed
-- @transition done -> ready
-- @transition done -> delayed
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key producers HASH channel -> its last call
-- @key stream:stream STREAM jobs that wait or run, one entry each
-- @key stream:ids HASH id -> entry, where they differ
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key windows ZSET unique key -> end of its window, ms
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg channel 16 random bytes as hex, or empty
-- @arg number the call's number on its channel
-- @arg id the job's id
-- @arg head format version and type
-- @arg tail options, newline, payload
-- @arg unique_arg empty, or "window key[ mode]": r, l: the waiting holder of the key is meant if no job has this id
-- @arg due_arg "+ms" or "@ms": the new due time; empty: as it was
-- @returns REPLACED done; then where it is, and its id
-- @returns AGAIN it was done and kept: forgotten, and enqueued anew; then where it is, and its id
-- @returns BEFORE this very call was applied before; then its answer, where the job was, its id
-- @returns CLASH the number was used for another call; nothing changed
-- @returns LATE a later call was applied already; nothing changed
-- @returns EXISTS it has started or ended, with the same record; second word: where it is
-- @returns ABSENT no such job: enqueue it
-- @returns OTHER it has started or ended; second word: where it is
-- @returns UNIQUE another job holds the new unique key; second word: which
-- @returns BIG payload over the limit; second word: the limit
-- @returns ENGINE the queue is stored by another engine
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- The only writer of an existing record. Keeps the id and the time of its enqueue. What
-- changes nothing uses up no number of the channel. A job that waits in a list keeps its
-- place; an entry of a stream cannot change, so there it goes to the back.
--- @include admit
--- @include record
--- @include unique_next
--- @include remove
--- @include wake
--- @include defer
--- @include place
--- @include waiting

local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'payload_max', 'retry', 'backoff', 'keep_progress')
k.paused, k.defaults = q[2], defaults_of(q[4], q[5], q[6])

-- Decide.
if q[1] and q[1] ~= ENGINE then
  return {'ENGINE', q[1]}
end
if not q[1] then
  return {redis.call('EXISTS', stats, jobs) > 0 and 'CORRUPT' or 'ABSENT', ''}
end
local max_bytes = tonumber(q[3] or '') or PAYLOAD_MAX
if #tail - string.find(tail, '\n', 1, true) > max_bytes then
  return {'BIG', digits(max_bytes)}
end
waiting_touch(k)
touch('LLEN', wake, due)
touch('HLEN', jobs, stats, unique, producers, state, results, errors, log, order)
touch('ZCARD', delayed, windows, kept)
if channel ~= '' then
  local saved = redis.call('HGET', producers, channel)
  local call, notes = channel_word(saved, tonumber(number), id, 1)
  if call == 'BEFORE' then
    local place, target = string.match(saved, '\n(%a+) (.*)$')
    return {'BEFORE', string.match(notes, '^0:(%u+)') or '', place or '', target or id}
  elseif call == 'CLASH' or call == 'LATE' then
    return {call, ''}
  end
end
local key, window, mode, line = unique_spec(unique_arg)
local target, record = id, record_of(k, id)
if not record and mode ~= '' and key ~= '-' then
  target = redis.call('HGET', unique, key) or id
  record = record_of(k, target)
end
local place = record and place_of(k, target)
local waits = place == 'ready' or place == 'delayed'
if not place or (target ~= id and not waits) then
  return {'ABSENT', ''}
end
local again = place == 'done' and target == id
if not waits and not again then
  return {same_record(record, head, tail) and 'EXISTS' or 'OTHER', place}
end
local old = record_unique(record)
local old_key = string.match(old, '^[^=]+')
local taken, before = key ~= '-' and (again or key ~= old_key), nil
if taken then
  local holder, _, _, runs = unique_holder(k, unique_arg, target, now)
  if holder then
    return {'UNIQUE', holder}
  end
  before = runs
end
-- One that waits for the end of another waits no more when it gets another key or time.
local linked = redis.call('HGET', unique, '=' .. old_key)
  and redis.call('HGET', unique, old_key) == target
local parked = linked and place == 'delayed'
local leaves = taken or key == '-'
local at = due_time(due_arg, now, later)
-- Its place in the line of its order key it keeps, unless it gets another key.
local score = place == 'delayed' and tonumber(redis.call('ZSCORE', delayed, target)) or 0
local behind = score >= PARKED
local moves = again or line ~= (order_link(k, target) or '')
local own = at -- until when it waits of itself
if due_arg == '' and place == 'delayed' and not parked then
  own = behind and (score > PARKED and score - PARKED or nil) or not behind and score or nil
end
if again and before and not at then
  at = now + PARK_MS
else
  before = nil
end

-- Apply.
local answer, enqueued = 'REPLACED', string.match(record, '^%d+ %S+ (%d+)')
if again then
  local freed = #record + redis.call('HSTRLEN', results, id)
  redis.call('ZREM', kept, id)
  redis.call('HINCRBY', stats, 'kept_bytes', -freed)
  unique_free_all(unique, state, {id})
  remove_jobs(k, {id})
  ledger_add(stats, 'forgotten', 1)
  answer, enqueued, old = 'AGAIN', digits(now), '-'
end
if leaves then
  unique_free(unique, old, target)
  unique_pass(k, old, target)
elseif linked and (due_arg ~= '' or line ~= '') then
  redis.call('HDEL', unique, '=' .. key)
end
local waits_behind = behind and not moves
if moves then
  order_leave(k, target)
  waits_behind = line ~= '' and redis.call('HEXISTS', order, line) == 1
end
if taken then
  redis.call('HSET', unique, key, target)
  if before then
    redis.call('HSET', unique, '=' .. key, before)
  else
    redis.call('HDEL', unique, '=' .. key)
  end
  if window > 0 then
    redis.call('ZADD', windows, now + window, key)
  end
end
local stored = head .. ' ' .. enqueued .. (k.defaults and defaults_add(tail, k.defaults) or tail)
if #stored > LONG then
  redis.call('HSET', config, 'long', '1')
end
if again then
  ledger_add(stats, 'enqueued', 1)
  if at or waits_behind then
    redis.call('HSET', jobs, id, stored)
    delayed_add(delayed, due, {waits_behind and order_parked(own) or at, id})
    ledger_add(stats, 'scheduled', 1)
  else
    waiting_add(k, id, stored)
    wake_worker(k, q[2])
  end
elseif place == 'delayed' then
  redis.call('HSET', jobs, target, stored)
  if waits_behind then
    delayed_add(delayed, due, {order_parked(own), target})
  elseif due_arg ~= '' or behind or (parked and (leaves or line ~= '')) then
    delayed_add(delayed, due, {own or now, target})
  end
elseif at or waits_behind then
  defer_job(k, target, waits_behind and order_parked(own) or at)
  redis.call('HSET', jobs, target, stored)
else
  waiting_rewrite(k, target, stored)
end
if moves and line ~= '' then
  order_join(k, {line, target})
end
if not again then
  ledger_add(stats, 'replaced', 1)
end
place = (at or waits_behind or (place == 'delayed' and not again)) and 'delayed' or 'ready'
if channel ~= '' then
  redis.call('HSET', producers, channel, table.concat(
    {number, digits(now), '1', '0:' .. answer, id}, ' ') .. '\n' .. place .. ' ' .. target)
end
return {answer, place, target}
