--- reclaim_held: takes back, at once, what a worker held that is known to be dead.
--
-- @flags allow-oom
-- @transition processing -> ready
-- @transition processing -> delayed
-- @transition processing -> dead
-- @transition processing -> cancelled
-- @key list:processing ZSET id -> end of its lease, ms
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key offers ZSET worker -> since when it waits, us
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the dead worker's id
-- @arg death how it died, for people; may be empty
-- @item id the job's id
-- @item token of the delivery
-- @item started 1: its handler had started; 0: not, so it is not charged
-- @returns OK taken back, but for the items in the notes
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer STALE this pair is not, or no longer, the dead worker's; nothing changed
-- @cost O(jobs * log processing)
--
-- Token and worker are the authority, so a wrong pair does no harm. What the worker
-- got in its last call and nobody named is taken back too, as claimed ahead.
-- Reply: word, how many went to ready, delayed, dead, cancelled, then the notes:
-- position, word.
--- @include reclaim
--- @include claims
--- @include opens
--- @include wake

-- Decide.
local now, later = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
reclaim_touch(k)
held_touch(k)
touch('ZCARD', offers)
local _, last_call = claims_of(claims, worker)
local lost, notes, named = {}, {}, {}

local function take(id, token, charged)
  local texts, words = held_look(k, {id}, {token}, worker)
  if named[id] or words[1] then
    return false
  end
  named[id] = true
  lost[#lost + 1] = {id = id, text = texts[1], charged = charged, token = token}
  return true
end

for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  if not take(ARGV[i], ARGV[i + 1], ARGV[i + 2] == '1') then
    notes[#notes + 1] = digits((i - ITEM_FIRST) / ITEM_WORDS)
    notes[#notes + 1] = 'STALE'
  end
end
for _, pair in ipairs(last_call) do
  take(pair.id, pair.token, false)
end
held_sort(lost)

-- Apply.
local front, wait, died, cancelled = reclaim_jobs(k, lost, now, later, death)
redis.call('HDEL', claims, worker)
redis.call('ZREM', offers, worker)
wake_worker(k, k.paused)
return {'OK', digits(front), digits(wait), digits(died), digits(cancelled), unpack(notes)}
