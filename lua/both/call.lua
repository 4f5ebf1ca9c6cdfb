--- call: as enqueue and schedule of one job, whose end is waited for from the first moment on.
--
-- @transition none -> ready
-- @transition none -> processing
-- @transition none -> delayed
-- @key jobs HASH id -> record
-- @key producers HASH channel -> its last call
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key windows ZSET unique key -> end of its window, ms
-- @key waiters HASH id -> who waits for its end
-- @key state HASH id -> what changes
-- @key claims HASH worker -> its last reserve
-- @key offers ZSET worker -> since when it waits, us
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg channel 16 random bytes as hex, or empty
-- @arg number the call's number on its channel
-- @arg mark random: names the queue if this call makes it
-- @arg tag channel, "/", number of this wait
-- @arg keep after so many ms nobody waits any more, unless wait is called
-- @item id the job's id
-- @item head format version and type: "1 mail"
-- @item tail options, newline, payload
-- @item unique empty, or "window key[ l]": ms, the encoded key; l: of a job that runs it is taken
-- @item due empty, or "+ms" from now, "@ms" since 1970; over already: ready at once
-- @returns OK stored, but for the item in the notes; its end will be told, unless it is refused, dead or done
-- @returns GAP the same, but earlier calls of this channel are missing: rolled back
-- @returns BEFORE this very call was applied before: its saved answer
-- @returns CLASH the number was used for other ids; nothing changed
-- @returns LATE a later call was applied already; nothing changed
-- @returns MANY too many wait for this job; nothing changed
-- @returns ENGINE the queue is stored by another engine
-- @returns CORRUPT the config is gone, jobs are there
-- @answer EXISTS stored before, with the same record; detail: where it is
-- @answer OTHER this id is taken by another record; detail: where that is
-- @answer UNIQUE the unique key is held; detail: by whom
-- @answer BIG payload over the limit; detail: the limit
-- @cost O(those who wait for this job)
--
-- Reply: as enqueue.
--- @include admit
--- @include waiters

local now, later = clock(now_arg)
local a = {now = now, later = later, channel = channel, number = number, mark = mark}
local waiting
a.look = function()
  waiting = waiters_with(k, ARGV[ITEM_FIRST], tag, keep, now)
  return not waiting and 'MANY' or nil
end
local reply = admit(k, a, ARGV, ITEM_FIRST, ITEM_WORDS, ARGV[ITEM_FIRST + 4] ~= '')
local id, note, place = ARGV[ITEM_FIRST], reply[4], reply[5]
if note == 'IDS' then
  id, note = place, nil
end
if (reply[1] == 'OK' or reply[1] == 'GAP')
   and (not note or note == 'EXISTS' and place ~= 'dead' and place ~= 'done') then
  redis.call('HSET', k.waiters, id, waiting)
end
return reply
