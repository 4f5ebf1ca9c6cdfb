--- reserve: hands out jobs with a lease.
--
-- @flags allow-oom
-- @transition ready -> processing
-- @transition ready -> dead
-- @transition ready -> expired
-- @transition ready -> delayed
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @arg call the number of this call of the worker
-- @arg free how many can start now
-- @arg ahead how many more may be claimed ahead
-- @arg lease ms
-- @arg bytes stop before so many bytes of records (at least one job)
-- @arg types what the worker runs, ' a b '; '! a b ': everything but; empty: everything
-- @arg keep ms that a job which does not say it keeps its result; 0: none
-- @returns OK jobs, or none were wanted
-- @returns EMPTY nothing is ready
-- @returns SHELVED nothing was ready but jobs that the worker does not run: put off
-- @returns MORE stopped at a bound: call again
-- @returns PAUSED the queue is paused
-- @returns REPEAT this call was answered before: what it got and still holds
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(jobs + tombstones skipped, 1000 at most)
--
-- Reply: word, then id, state, record of each job. A ready job without record
-- becomes dead (lost_body); one that is too late to start ends as expired; one of a
-- type that the worker does not run waits 5 s in delayed (shelved).
--- @include reserve
--- @include engine

local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'long', 'generation')
k.paused, k.wakes_later = q[2], true
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
local r = {worker = worker, call = call, free = tonumber(free), ahead = tonumber(ahead),
  lease = tonumber(lease), bytes = tonumber(bytes), paused = q[2], long = q[3],
  types = types, keep = keep, generation = q[4], knows = {}}
local reply = {''}
reply[1] = reserve_apply(k, r, reserve_plan(k, r, now), now, later, reply)
return reply
