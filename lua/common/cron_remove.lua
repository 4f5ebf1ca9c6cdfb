--- cron_remove: takes an entry away. Its jobs stay.
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
-- @arg rev the revision to remove; empty: whatever is there
-- @returns OK removed
-- @returns GONE no such entry
-- @returns CHANGED it has another revision by now; nothing changed
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- Removes also what cannot be read as an entry.
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
if not e and redis.call('HEXISTS', cron, name) == 0 then
  return {'GONE', '0'}
elseif rev ~= '' and (not e or rev ~= e.rev) then
  return {'CHANGED', e and e.rev or '0'}
end

-- Apply.
redis.call('HDEL', cron, name)
if redis.call('HLEN', cron) <= 1 then
  redis.call('DEL', cron)
else
  cron_changed(cron, due, now)
end
return {'OK', e and e.rev or '0'}
