--- cron_pause: an entry's ticks pass and make no jobs, until cron_resume.
--
-- @flags allow-oom
-- @key cron HASH name -> entry and its last tick
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST list engine: ids that wait
-- @key stream STREAM stream engine: jobs that wait or run
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg name the entry's name
-- @returns OK paused
-- @returns AGAIN it was paused before
-- @returns GONE no such entry
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- A run that waits for the one before it is dropped.
--- @include cron
--- @include engines
--- @include touch

-- Decide.
local now = clock(now_arg)
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
touch('LLEN', due)
local e = cron_read(cron, name)
if not e then
  return {'GONE'}
elseif e.flag == 'p' then
  return {'AGAIN'}
end

-- Apply.
if e.waits ~= '-' then
  e.skipped, e.waits = e.skipped + 1, '-'
end
e.flag = 'p'
cron_write(cron, name, e)
cron_changed(cron, due, now)
return {'OK'}
