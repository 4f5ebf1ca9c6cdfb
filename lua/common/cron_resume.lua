--- cron_resume: a paused entry goes on with its next tick.
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
-- @arg rev the revision that `upcoming` was computed for
-- @arg upcoming ms of the next tick after now, or -
-- @returns OK resumed
-- @returns AGAIN it was not paused
-- @returns GONE no such entry
-- @returns CHANGED it has another revision by now; nothing changed
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
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
elseif e.flag ~= 'p' then
  return {'AGAIN'}
elseif e.rev ~= rev then
  return {'CHANGED'}
end

-- Apply.
e.flag, e.due = '-', upcoming
cron_write(cron, name, e)
cron_changed(cron, due, now)
return {'OK'}
