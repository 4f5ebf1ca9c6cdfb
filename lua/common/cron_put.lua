--- cron_put: stores an entry, or changes what it says.
--
-- @key cron HASH name -> entry and its last tick
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST list engine: ids that wait
-- @key stream STREAM stream engine: jobs that wait or run
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg name the entry's name
-- @arg rev the revision to change; 0: it must be new; empty: whatever is there
-- @arg upcoming ms of the next tick after now, or -; used when the schedule is new
-- @arg limit entries a queue may have
-- @arg def options, newline, template
-- @returns OK stored
-- @returns SAME it was there with the same definition; nothing changed
-- @returns EXISTS it is not new; nothing changed
-- @returns GONE there is none to change
-- @returns CHANGED it has another revision by now; nothing changed
-- @returns FULL as many entries as a queue may have; nothing changed
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- A tick that is due stays due as long as the schedule (spec, zone) is the same; else the next
-- one counts. Reply: word, revision.
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
if e and e.def == def then
  return {'SAME', e.rev}
elseif e and rev == '0' then
  return {'EXISTS', e.rev}
elseif not e and rev ~= '' and rev ~= '0' then
  return {'GONE', '0'}
elseif e and rev ~= '' and rev ~= e.rev then
  return {'CHANGED', e.rev}
elseif not e and redis.call('HLEN', cron) > tonumber(limit) then
  return {'FULL', '0'}
end

-- Apply.
if not e then
  e = {rev = '0', due = upcoming, flag = '-', last = '-', at = '0', fired = 0, skipped = 0,
       waits = '-', def = def}
elseif cron_option(e.def, 'spec') ~= cron_option(def, 'spec')
    or cron_option(e.def, 'zone') ~= cron_option(def, 'zone') then
  e.due = upcoming
end
-- Never a number that it had before, not even if it was removed meanwhile.
e.rev, e.def = digits(math.max(e.rev + 1, now)), def
cron_write(cron, name, e)
cron_changed(cron, due, now)
return {'OK', e.rev}
