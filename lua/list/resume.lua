--- resume: reserve hands out jobs again.
--
-- @flags allow-oom
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
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
local word = engine_word(q[1], stats, jobs, ready)
if word then
  return {word}
end
touch('LLEN', ready, wake)
touch('HLEN', tombs)
redis.call('HDEL', config, 'paused')
wake_worker(wake, ready, tombs, false)
return {q[2] and 'OK' or 'AGAIN'}
