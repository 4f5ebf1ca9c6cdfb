--- pause: reserve hands out nothing until resume. What runs goes on.
--
-- @flags allow-oom
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key list:ready LIST ids that wait, taken from the right
-- @key stream:stream STREAM the jobs that wait and run
-- @key config HASH engine, limits, paused, moving
-- @arg now the test clock, ms; empty: the server's
-- @arg who one word: who paused it
-- @arg why one encoded word, or -
-- @returns OK paused; a move to the other engine that is under way leaves it so
-- @returns AGAIN it was paused before; who and why are as they were
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--- @include clock
--- @include engine

local now = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'moving')
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
local to, phase = string.match(q[3] or '', '^(%a+) 0 (%a+)$')
if q[2] and not to then
  return {'AGAIN'}
end
if to then -- else its end would resume what somebody has paused meanwhile
  redis.call('HSET', config, 'moving', to .. ' 1 ' .. phase)
end
redis.call('HSET', config, 'paused', digits(now) .. ' ' .. who .. ' ' .. why)
return {'OK'}
