--- replace: gives a job that has not started a new record.
--
-- @transition ready -> ready
-- @transition delayed -> delayed
-- @key jobs HASH id -> record
-- @key processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key unique HASH unique key -> id that holds it
-- @key windows ZSET unique key -> end of its window, ms
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg id the job's id
-- @arg head format version and type
-- @arg tail options, newline, payload
-- @arg unique_arg empty, or "window key": ms and the encoded key that the tail names
-- @arg due_arg "+ms" or "@ms": the new due time of a delayed job; empty: as it was
-- @returns REPLACED done; second word: where it is
-- @returns ABSENT no such job: enqueue it
-- @returns OTHER it has started or ended; second word: where it is
-- @returns UNIQUE another job holds the new unique key; second word: which
-- @returns BIG payload over the limit; second word: the limit
-- @returns ENGINE the queue is stored by another engine
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- The only writer of an existing record. Keeps the id and the time of its enqueue.
--- @include admit
--- @include record
--- @include unique

local k = {jobs = jobs, processing = processing, delayed = delayed, dead = dead, kept = kept, unique = unique, windows = windows, due = due, stats = stats, }
local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'payload_max')

-- Decide.
if q[1] and q[1] ~= 'list' then
  return {'ENGINE', q[1]}
end
if not q[1] then
  return {redis.call('EXISTS', stats, jobs) > 0 and 'CORRUPT' or 'ABSENT', ''}
end
local max_bytes = tonumber(q[2] or '') or PAYLOAD_MAX
if #tail - string.find(tail, '\n', 1, true) > max_bytes then
  return {'BIG', digits(max_bytes)}
end
touch('LLEN', due)
touch('HLEN', stats, unique)
touch('ZCARD', delayed, windows)
local record = redis.call('HGET', jobs, id)
if not record then
  return {'ABSENT', ''}
end
local place = place_of(k, id)
if place ~= 'ready' and place ~= 'delayed' then
  return {'OTHER', place}
end
local old_key, key, window = record_unique(record), '-', 0
if unique_arg ~= '' then
  window, key = string.match(unique_arg, '^(%d+) (%S+)$')
  if key ~= old_key then
    local holder = unique_holder(k, unique_arg, id, now)
    if holder then
      return {'UNIQUE', holder}
    end
  end
end

-- Apply.
local enqueued = string.match(record, '^%d+ %S+ (%d+)')
if key ~= old_key then
  unique_free(unique, old_key, id)
  if key ~= '-' then
    redis.call('HSET', unique, key, id)
  end
  if tonumber(window) > 0 then
    redis.call('ZADD', windows, now + window, key)
  end
end
record = head .. ' ' .. enqueued .. tail
redis.call('HSET', jobs, id, record)
if #record > LONG then
  redis.call('HSET', config, 'long', '1')
end
if place == 'delayed' and due_arg ~= '' then
  delayed_add(delayed, due, {due_time(due_arg, now, later) or now, id})
end
ledger_add(stats, 'replaced', 1)
return {'REPLACED', place}
