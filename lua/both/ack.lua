--- ack: a worker reports that it finished jobs.
--
-- @flags allow-oom
-- @transition processing -> done
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key delayed ZSET id -> due time, ms
-- @key wake LIST the marker that wakes one worker
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key kept ZSET id -> when it is forgotten, ms
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
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @item id the job's id
-- @item token of the delivery
-- @item result bytes; kept only if the job keeps results
-- @item facts of the run, one word, see docs/keys.md; may be empty
-- @returns OK done, but for the items in the notes
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer ANSWERED this delivery was answered before; nothing changed
-- @answer STALE another delivery owns the job; nothing changed
-- @answer GONE no such job; nothing changed
-- @cost O(jobs * log processing)
--
-- Reply: word, then position, word of each item that was not held.
--- @include ack
--- @include engine
--- @include touch

local q = redis.call('HMGET', config, 'engine', 'paused')
k.paused = q[2]
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
ended_touch(k, only_item(ARGV, ITEM_FIRST, ITEM_WORDS))
remove_touch(k)
local plain = {}
local held, notes = answer_check(k, ARGV, ITEM_FIRST, ITEM_WORDS, worker, plain)
if #held > 0 then
  touch('ZCARD', kept)
end
local now = #held > 0 and clock(now_arg)
ack_apply(k, ARGV, ITEM_FIRST, ITEM_WORDS, held, notes, plain, now)
return {'OK', unpack(notes)}
