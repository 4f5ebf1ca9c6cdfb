--- withdraw: who was woken by a marker that brings another worker its job gives that back for it.
--
-- @flags allow-oom
-- @transition processing -> ready
-- @transition processing -> cancelled
-- @key delayed ZSET id -> due time, ms
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the other's id
-- @arg call the number of the call that got the job
-- @arg off 1: whoever asks makes no offers, so none is taken for a while
-- @returns OK it waits again, or was cancelled
-- @returns STALE the other knows of it, or has it no more; nothing changed
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(log jobs)
--
-- That is so where workers wait for several queues, and make no offers; or the other is gone, or
-- did not wait just then.
--- @include answer
--- @include wake
--- @include opens
--- @include touch
--- @include offers_off

-- Decide.
local now = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
local head, id, token = string.match(redis.call('HGET', claims, worker) or '',
                                     '^' .. call .. ' (%d+ %d+) handed\n([^\t]+)\t(%S+)\t')
if not head then
  return {'STALE'}
end
ended_touch(k)
held_touch(k)
remove_touch(k)
touch('LLEN', wake)
touch('HLEN', stats, unique)
local held, notes = answer_check(k, {id, token}, 1, 2, worker)
if #held == 0 then
  return {'STALE'}
end

-- Apply.
if off == '1' then
  offers_put_off(k, now)
end
redis.call('HSET', claims, worker, call .. ' ' .. head .. '\n')
held = end_cancelled(k, held, 1, notes, 2, now)
if held[1] then
  local _, key = string.match(held[1].text, STATE_END)
  unique_move(unique, key, id, '')
  redis.call('HSET', state, id, held[1].text)
  ledger_add(stats, 'released', held_front(k, {id}))
end
wake_worker(k, k.paused)
return {'OK'}
