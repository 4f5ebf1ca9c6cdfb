--- exchange: acks a batch and reserves the next, in one call.
--
-- @flags allow-oom
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
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
-- @key claims HASH worker -> its last reserve
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @arg call the number of this call of the worker
-- @arg free how many can start now
-- @arg ahead how many more may be claimed ahead
-- @arg lease ms
-- @arg bytes stop before so many bytes of records (at least one job)
-- @arg types what the worker runs, ' a b '; '! a b ': everything but; empty: everything
-- @arg keep ms that a job which does not say it keeps its result; 0: none
-- @item id the job's id
-- @item token of the delivery
-- @item result bytes; kept only if the job keeps results
-- @item facts of the run, one word, see docs/keys.md; may be empty
-- @returns OK jobs, or none were wanted
-- @returns EMPTY nothing is ready
-- @returns SHELVED nothing was ready but jobs that the worker does not run: put off
-- @returns MORE stopped at a bound: call again
-- @returns PAUSED the queue is paused
-- @returns REPEAT this call was answered before: what it got and still holds
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer ANSWERED this delivery was answered before; nothing changed
-- @answer STALE another delivery owns the job; nothing changed
-- @answer GONE no such job; nothing changed
-- @cost as ack and reserve
--
-- Reply: word, how many notes follow, the notes of ack (position, word), then id,
-- state, record of each job.
--- @include ack
--- @include reserve
--- @include engine

-- Is one of the lost ones among those that end in this call?
local function stands_twice(lost, held, plain)
  local ends = {}
  for i = 1, #lost > 0 and #plain or 0 do
    ends[plain[i]] = true
  end
  for i = 1, #lost > 0 and #held or 0 do
    ends[held[i].id] = true
  end
  for i = 1, #lost do
    if ends[lost[i][1]] then
      return true
    end
  end
  return false
end

local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'long', 'generation')
k.paused, k.wakes_later = q[2], true
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
-- Both decide before either writes.
local plain = {}
local held, notes = answer_check(k, ARGV, ITEM_FIRST, ITEM_WORDS, worker, plain)
local r = {worker = worker, call = call, free = tonumber(free), ahead = tonumber(ahead),
  lease = tonumber(lease), bytes = tonumber(bytes), paused = q[2], long = q[3],
  types = types, keep = keep, generation = q[4], knows = {}}
remove_touch(k)
ended_touch(k, only_item(ARGV, ITEM_FIRST, ITEM_WORDS))
local plan = reserve_plan(k, r, now)
local twice = stands_twice(plan.lost, held, plain)
if #held > 0 or twice then -- what only a second plan knows
  touch('ZCARD', kept, dead)
  touch('LLEN', due)
end
ack_apply(k, ARGV, ITEM_FIRST, ITEM_WORDS, held, notes, plain, now)
-- One that was let in may be next, or stand where the plan saw a tombstone; one that stands
-- twice has ended now.
if k.let_in or twice then
  plan = reserve_plan(k, r, now)
end
local reply = {'', digits(#notes), unpack(notes)}
reply[1] = reserve_apply(k, r, plan, now, later, reply)
return reply
