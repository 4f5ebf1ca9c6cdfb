--- cron_fire: makes the job of an entry's tick, and sets the tick after it: one step, so that
-- any number of schedulers makes it once.
--
-- @transition none -> ready
-- @transition none -> delayed
-- @transition ready -> cancelled
-- @transition delayed -> cancelled
-- @transition processing -> processing
-- @key cron HASH name -> entry and its last tick
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key windows ZSET unique key -> end of its window, ms
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg name the entry's name
-- @arg rev the revision that was read
-- @arg expected ms of the tick that is due; another one by now: CHANGED
-- @arg tick ms of the tick that makes a job, at or after that one; empty: none, all passed
-- @arg upcoming ms of the next tick, or -
-- @arg at "@ms": the job starts not before; empty: at once
-- @arg passed how many ticks are skipped for good
-- @returns OK made; detail: its id
-- @returns PASSED no tick made a job
-- @returns SKIPPED the job before still waits or runs; detail: its id
-- @returns WAITS this run waits for the end of the job before; detail: that job's id
-- @returns REFUSED it could not be enqueued; detail: UNIQUE, OTHER or BIG, and more
-- @returns EARLY not due yet; detail: us until it is; nothing changed
-- @returns CHANGED another tick is due, or another revision; nothing changed
-- @returns GONE no such entry
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- A job's id is cron:NAME:TICK. Reply: word, detail, revision, due, flag, waits, worker of
-- the job that was called off.
--- @include cron_run
--- @include engine

local function answer(word, detail, e, worker)
  return {word, detail, e.rev, e.due, e.flag, e.waits, worker or ''}
end

-- Decide.
local now, later, us = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'payload_max', 'long', 'retry', 'backoff',
                     'keep_progress', 'moving')
k.paused, k.defaults, k.moving = q[2], defaults_of(q[5], q[6], q[7]), q[8]
local word, detail, worker = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream), '', ''
if word then
  return {word}
end
local e = cron_read(cron, name)
if not e then
  return {'GONE'}
end
if e.rev ~= rev or e.due ~= expected or e.flag ~= '-' then
  return answer('CHANGED', '', e)
end
local wait = (tick ~= '' and tick or expected) * 1000 - us
if wait > 0 then
  return answer('EARLY', digits(wait), e)
end
cron_touch(k)
local what = 'PASS'
if tick ~= '' then
  what, detail = cron_decide(k, e, name)
  if e.waits ~= '-' and what == 'RUN' then
    what = 'WAIT' -- that one's turn is before this
  end
end

-- Apply.
e.due, e.skipped = upcoming, e.skipped + passed
if what == 'REPLACE' then
  worker = cron_replace(k, detail, now_arg, now)
end
if what == 'PASS' then
  word = 'PASSED'
elseif what == 'SKIP' then
  word, e.skipped = 'SKIPPED', e.skipped + 1
elseif what == 'WAIT' then
  if e.waits ~= '-' then
    e.skipped = e.skipped + 1
  end
  word, e.waits = 'WAITS', tick
else
  local refused, why = cron_make(k, e, name, tick, at, q, now, later)
  if refused then
    word, detail, e.skipped = 'REFUSED', refused .. ' ' .. why, e.skipped + 1
  else
    word, detail = 'OK', cron_id(name, tick)
  end
end
cron_write(cron, name, e)
return answer(word, detail, e, worker)
