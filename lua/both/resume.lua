--- resume: reserve hands out jobs again.
--
-- @flags allow-oom
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key wake LIST the marker that wakes one worker
-- @key config HASH engine, limits, paused
-- @returns OK it runs again
-- @returns AGAIN it was not paused
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--- @include engine
--- @include wake
--- @include touch

local q = redis.call('HMGET', config, 'engine', 'paused')
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
ready_touch(k)
touch('LLEN', wake)
redis.call('HDEL', config, 'paused')
wake_worker(k, false)
return {q[2] and 'OK' or 'AGAIN'}
