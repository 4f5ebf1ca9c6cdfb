--- cron_run: makes a job of an entry now: because a person asks, or because the run that waited
-- for the end of the one before can start.
--
-- @transition none -> ready
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
-- @key producers HASH channel -> its last call
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg name the entry's name
-- @arg run a random word; empty: the run that waits
-- @arg remember 1: the repeat of this call is known for an hour, whatever ran meanwhile; empty: while it was the last
-- @returns OK made; detail: its id
-- @returns SKIPPED the job before still waits or runs; detail: its id
-- @returns WAITS it waits for the end of the job before; detail: that job's id
-- @returns REFUSED it could not be enqueued; detail: UNIQUE, OTHER or BIG, and more
-- @returns NONE no run waits; nothing changed
-- @returns GONE no such entry
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- The due tick stays. Works on a paused entry as well. Reply: word, detail, revision, due,
-- flag, waits, worker of the job that was called off.
--- @include cron_run
--- @include engine

local function answer(word, detail, e, worker)
  return {word, detail, e.rev, e.due, e.flag, e.waits, worker or ''}
end

-- Decide.
local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'payload_max', 'long', 'retry', 'backoff',
                     'keep_progress', 'moving')
k.paused, k.defaults, k.moving = q[2], defaults_of(q[5], q[6], q[7]), q[8]
local word, worker = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream), ''
if word then
  return {word}
end
local e = cron_read(cron, name)
if not e then
  return {'GONE'}
end
local waiting = run == ''
local mark = waiting and e.waits or run
if mark == '-' then
  return answer('NONE', '', e)
end
if mark == e.last then
  return answer('OK', cron_id(name, mark), e) -- the repeat of a call
end
local call = remember == '1' and cron_id(name, mark) -- as a channel of one call
local saved = call and redis.call('HGET', producers, call)
if saved then
  redis.call('HSET', producers, call, (string.gsub(saved, '^(%d+) %d+', '%1 ' .. digits(now))))
  if e.waits == mark then
    return answer('WAITS', cron_id(name, e.last), e)
  end
  return answer('OK', cron_id(name, mark), e)
end
local function note_call()
  if call then
    redis.call('HSET', producers, call, '1 ' .. digits(now) .. ' 1 - ' .. call)
  end
end
cron_touch(k)
local what, detail = cron_decide(k, e, name)
if what == 'WAIT' then
  if e.waits == '-' then
    e.waits = mark
    cron_write(cron, name, e)
    note_call()
  end
  return answer('WAITS', detail, e)
elseif what == 'SKIP' and not waiting then
  return answer('SKIPPED', detail, e)
end

-- Apply.
if waiting then
  e.waits = '-'
end
if what == 'SKIP' then -- it did not when this run began to wait
  word, e.skipped = 'SKIPPED', e.skipped + 1
else
  if what == 'REPLACE' then
    worker = cron_replace(k, detail, now_arg, now)
  end
  local refused, why = cron_make(k, e, name, mark, '', q, now, later)
  if refused then
    word, detail = 'REFUSED', refused .. ' ' .. why
    e.skipped = e.skipped + (waiting and 1 or 0)
  else
    word, detail = 'OK', cron_id(name, mark)
    note_call()
  end
end
cron_write(cron, name, e)
return answer(word, detail, e, worker)
