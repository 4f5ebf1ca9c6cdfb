--- promote: moves due jobs from delayed to ready.
--
-- @flags allow-oom
-- @transition delayed -> ready
-- @transition stream:delayed -> dead
-- @key delayed ZSET id -> due time, ms
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key stream:jobs HASH id -> record
-- @key stream:state HASH id -> what changes
-- @key stream:errors HASH id -> last errors
-- @key stream:dead ZSET id -> time of death, ms
-- @key stream:unique HASH unique key -> id that holds it
-- @key stream:order HASH lines of the order keys
-- @key stream:waiters HASH id -> who waits for its end
-- @key stream:due LIST the marker that wakes the scheduler
-- @key wake LIST the marker that wakes one worker
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @key heartbeat_promote STRING promotion is alive
-- @arg now the test clock, ms; empty: the server's
-- @arg limit at most so many
-- @returns OK nothing more is due
-- @returns MORE call again at once
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit * log delayed)
--
-- Reply: word, how many moved, microseconds until the next is due (-1: none).
--- @include clock
--- @include engine
--- @include due_jobs
--- @include wake
--- @include touch
--- @include parked

-- Decide.
local now, _, now_us = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused')
k.paused = q[2]
local word = engine_word(q[1], k.stats, k.delayed, k.ready or k.stream)
if word then
  return {word}
end
touch('LLEN', wake)
touch('HLEN', stats)
local ids = redis.call('ZRANGEBYSCORE', delayed, '-inf', now_us / 1000, 'LIMIT', 0, limit)
local plan = due_plan(k, ids)

-- Apply.
local moved = due_move(k, plan, now)
redis.call('SET', heartbeat_promote, digits(now), 'EX', 30)
wake_worker(k, q[2])
local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if head and tonumber(head) >= PARKED then
  head = nil
end
local left = head and math.ceil(tonumber(head) * 1000 - now_us) or -1
if head and left <= 0 then
  return {'MORE', digits(moved), '0'}
end
return {'OK', digits(moved), digits(left)}
