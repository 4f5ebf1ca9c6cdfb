--- retry: a worker reports that jobs failed, or want to run later.
--
-- @flags allow-oom
-- @transition processing -> delayed
-- @transition processing -> cancelled
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key wake LIST the marker that wakes one worker
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key due LIST the marker that wakes the scheduler
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @item id the job's id
-- @item token of the delivery
-- @item delay ms from now
-- @item outcome 'failed' uses up an attempt; 'snoozed' does not
-- @item text one line that says why
-- @item facts of the run, one word, see docs/keys.md; may be empty
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
--- @include due
--- @include opens
--- @include touch

-- Decide.
local now, later = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
ended_touch(k)
touch('HLEN', jobs, results, errors, log, stats, unique)
touch('ZCARD', delayed)
touch('LLEN', due)
local held, notes = answer_check(k, ARGV, ITEM_FIRST, ITEM_WORDS, worker)

-- Apply.
answer_count(k, notes)
held = end_cancelled(k, held, ITEM_FIRST, notes, ITEM_WORDS, now)
local ids, wait, states = {}, {}, {}
for i, h in ipairs(held) do
  local s, outcome = state_read(h.text), ARGV[h.at + 3]
  if outcome == 'snoozed' then
    s.snoozes = s.snoozes + 1
  else
    s.attempts = s.attempts + 1
  end
  s.lost = 0
  ids[i] = h.id
  unique_move(unique, s.unique, h.id, '')
  wait[#wait + 1] = later + ARGV[h.at + 2]
  wait[#wait + 1] = h.id
  states[#states + 1] = h.id
  states[#states + 1] = state_text(s)
  errors_add(errors, h.id, now, outcome, ARGV[h.at + 4], s, worker, ARGV[h.at + 5])
end
if #ids > 0 then
  held_store(k, ids)
  redis.call('HSET', state, unpack(states))
  delayed_add(delayed, due, wait)
  ledger_add(stats, 'retried', #ids)
end
return {'OK', unpack(notes)}
