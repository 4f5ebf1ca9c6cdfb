--- release: a worker hands jobs back unharmed: to the front, in their old order.
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
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @item id the job's id
-- @item token of the delivery
-- @item facts of the run, one word, see docs/keys.md; empty: it had not begun
-- @returns OK moved, but for the items in the notes
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer CANCELLED it was flagged: the job ended as cancelled
-- @answer ANSWERED this delivery was answered before; nothing changed
-- @answer STALE another delivery owns the job; nothing changed
-- @answer GONE no such job; nothing changed
-- @cost O(jobs * log jobs)
--
-- Reply: word, then position, word of each item that did not move so.
--- @include answer
--- @include errors
--- @include wake
--- @include opens
--- @include touch

-- Decide.
local now = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
ended_touch(k)
held_touch(k)
touch('HLEN', jobs, results, errors, log, stats, unique)
touch('LLEN', wake)
local held, notes = answer_check(k, ARGV, ITEM_FIRST, ITEM_WORDS, worker)

-- Apply.
answer_count(k, notes)
held = end_cancelled(k, held, ITEM_FIRST, notes, ITEM_WORDS, now)
held_sort(held)
local ids, states = {}, {}
for i, h in ipairs(held) do
  local s = state_read(h.text)
  s.interrupted = s.interrupted + 1
  if ARGV[h.at + 2] ~= '' then
    errors_add(errors, h.id, now, 'released', '', s, worker, ARGV[h.at + 2])
  end
  ids[i] = h.id
  unique_move(unique, s.unique, h.id, '')
  states[#states + 1] = h.id
  states[#states + 1] = state_text(s)
end
if #ids > 0 then
  redis.call('HSET', state, unpack(states))
  ledger_add(stats, 'released', held_front(k, ids))
end
wake_worker(k, k.paused)
return {'OK', unpack(notes)}
