--- cancel: calls jobs off: at once while they wait, by a flag while they run.
--
-- @flags allow-oom
-- @transition ready -> cancelled
-- @transition delayed -> cancelled
-- @transition processing -> processing
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key wake LIST the marker that wakes one worker
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key waiters HASH id -> who waits for its end
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @item id the job's id
-- @returns OK one answer an item follows
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer READY it waited in ready; cancelled
-- @answer DELAYED it waited in delayed; cancelled
-- @answer FLAGGED it runs; its next answer ends it; detail: the worker
-- @answer DEAD it was given up before; nothing changed
-- @answer DONE it finished before; nothing changed
-- @answer GONE no such job; nothing changed
-- @answer BROKEN a record without a place in a queue that holds nothing; nothing changed
-- @cost O(jobs)
--
-- Reply: word, then answer, detail of every item.
--- @include cancel
--- @include opens

-- Decide.
local word = opens(k)
if word then
  return {word}
end
local plan = cancel_plan(k, ARGV, ITEM_FIRST, now_arg)

-- Apply.
cancel_apply(k, plan, clock(now_arg))
local reply = {'OK'}
for _, p in ipairs(plan) do
  reply[#reply + 1] = p.word
  reply[#reply + 1] = p.detail
end
return reply
