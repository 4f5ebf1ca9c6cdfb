--- reschedule: gives a waiting job another due time, or lets it run now.
--
-- @flags allow-oom
-- @transition delayed -> delayed
-- @transition delayed -> ready
-- @transition ready -> delayed
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key stats HASH the ledger's counters
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg id the job's id
-- @arg due_arg "+ms" from now, "@ms" since 1970; empty: now, before all others
-- @returns DELAYED it waits until its due time; second word: that time
-- @returns READY it waits for a worker
-- @returns OTHER it runs or has ended; second word: where it is; nothing changed
-- @returns BEHIND it waits for the end of another of its order key; second word: which; nothing changed
-- @returns GONE no such job; nothing changed
-- @returns BROKEN a record without a place in a queue that holds nothing; nothing changed
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(log delayed)
--
-- A job that leaves the list ready keeps its place there under a tombstone, as a cancelled one
-- does; once it is due it takes that place again if it still stands. A stream has no front for
-- what comes in: there `now` means the back of the line. One that waits for another of its
-- order key gets the time that it waits for after that.
--- @include clock
--- @include ledger
--- @include place
--- @include waiting
--- @include due
--- @include due_time
--- @include defer
--- @include record
--- @include wake
--- @include touch
--- @include engine
--- @include parked

-- Decide.
local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused')
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
waiting_touch(k)
touch('LLEN', wake, due)
touch('HLEN', jobs, stats, unique, order)
touch('ZCARD', delayed)
local record = record_of(k, id)
local place = record and place_of(k, id)
if not place then
  return {'GONE', ''}
elseif place ~= 'ready' and place ~= 'delayed' then
  return {'OTHER', place}
elseif place == 'ready' and waiting_left(k) <= 0 then
  return {'BROKEN', ''}
end
local at = due_time(due_arg, now, later)
if place == 'delayed' and tonumber(redis.call('ZSCORE', delayed, id)) >= PARKED then
  local _, before = order_link(k, id)
  if before and not at then
    return {'BEHIND', before}
  elseif before then
    delayed_add(delayed, due, {order_parked(at), id})
    return {'DELAYED', digits(math.floor(at + 0.5))}
  end
end

-- Apply. One that waited for the end of another waits for its time now.
local key = string.match(record_unique(record), '^[^=]+')
if key ~= '-' and redis.call('HGET', unique, key) == id then
  redis.call('HDEL', unique, '=' .. key)
end
if at and place == 'ready' then
  defer_job(k, id, at)
  return {'DELAYED', digits(math.floor(at + 0.5))}
elseif at then
  delayed_add(delayed, due, {at, id})
  return {'DELAYED', digits(math.floor(at + 0.5))}
end
if place == 'delayed' then
  redis.call('ZREM', delayed, id)
  if due_arg == '' then
    waiting_next(k, id)
  else
    ready_back(k, {id})
  end
  ledger_add(stats, 'promoted', 1)
  wake_worker(k, q[2])
end
return {'READY', ''}
