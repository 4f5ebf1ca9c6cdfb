--- wait: somebody wants to be told when a job ends.
--
-- @key waiters HASH id -> who waits for its end
-- @key list:ready LIST ids that wait, taken from the right
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key stream:delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg id the job's id
-- @arg tag channel, "/", number of this wait
-- @arg keep after so many ms nobody waits any more, unless this is called again
-- @arg early 1: the job may come only after this call
-- @returns OK it will be told
-- @returns ENDED the job is dead or done: look at it
-- @returns GONE no such job
-- @returns MANY too many wait for this job
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(those who wait for this job)
--- @include clock
--- @include engine
--- @include place
--- @include waiters

-- Decide.
local now = clock(now_arg)
local word = engine_word(redis.call('HGET', config, 'engine'), k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
if early ~= '1' and not record_of(k, id) then
  return {'GONE'}
end
if redis.call('ZSCORE', dead, id) or redis.call('ZSCORE', kept, id) then
  return {'ENDED'}
end
local waiting = waiters_with(k, id, tag, keep, now)
if not waiting then
  return {'MANY'}
end

-- Apply.
redis.call('HSET', waiters, id, waiting)
return {'OK'}
