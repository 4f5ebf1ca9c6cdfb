--- replay: gives dead jobs a new life, at the back of the line.
--
-- @flags allow-oom
-- @transition dead -> ready
-- @transition dead -> delayed
-- @key dead ZSET id -> time of death, ms
-- @key delayed ZSET id -> due time, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key list:processing ZSET id -> end of its lease, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key errors HASH id -> last errors
-- @key stats HASH the ledger's counters
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key wake LIST the marker that wakes one worker
-- @key config HASH engine, limits, paused
-- @arg limit without items: the oldest dead ones, at most so many
-- @arg before and that died not after this time, ms; empty: any
-- @arg skip and behind the first so many: those that could not move before
-- @item id the job's id
-- @returns OK moved, but for the items in the notes
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer GONE it is not dead; nothing changed
-- @answer NOBODY its body is lost: nothing can run; nothing changed
-- @answer UNIQUE another job holds its unique key; detail: which; nothing changed
-- @cost O(jobs * log dead)
--
-- Attempts, losses, interruptions and snoozes start anew; the token counter goes on. An
-- ordered job goes to the end of its line.
-- Reply: word, how many moved, how many were looked at, then position, word, detail of
-- items that did not move. Without items the position is that of the job in the slice, and a
-- stream takes in no more than 256 KiB of records, but one job at least.
--- @include choose_dead
--- @include dead
--- @include state
--- @include unique_holder
--- @include ledger
--- @include ready
--- @include wake
--- @include opens
--- @include touch
--- @include due
--- @include order

local REPLAY_BYTES = 262144 -- of records that are copied into a stream by one call

-- Decide.
local word = opens(k)
if word then
  return {word}
end
ready_touch(k)
touch('LLEN', wake, due)
touch('ZCARD', delayed)
touch('HLEN', jobs, state, errors, stats, unique, order)
local ids, notes, at = choose_dead(dead, ARGV, ITEM_FIRST, limit, before, skip)
local moved, states, keys, taken, lines, looked, bytes = {}, {}, {}, {}, {}, 0, 0
local texts = #ids > 0 and redis.call('HMGET', state, unpack(ids)) or {}
for i, id in ipairs(ids) do
  if ENGINE == 'stream' and bytes > REPLAY_BYTES and #ARGV < ITEM_FIRST then
    break
  end
  looked = i
  local text, why, detail = texts[i], nil, ''
  local s = text and state_read(text)
  local size = redis.call('HSTRLEN', jobs, id)
  if size == 0 or (size < 100 and string.find(redis.call('HGET', jobs, id), '^1 %- %d+ lost_body=1\n')) then
    why = 'NOBODY'
  elseif s and not string.find(s.unique, '^-') then
    local key = string.match(s.unique, '^[^=]+')
    local holder = taken[key] or redis.call('HGET', unique, key)
    if holder and holder ~= id and (taken[key] or unique_holds(k, holder)) then
      why, detail = 'UNIQUE', holder
    else
      taken[key] = id
      keys[#keys + 1] = key
      keys[#keys + 1] = id
    end
  end
  if why then
    notes[#notes + 1] = at[i]
    notes[#notes + 1] = why
    notes[#notes + 1] = detail
  else
    moved[#moved + 1] = id
    bytes = bytes + size
    local line = s and order_key(s.unique)
    if line then
      lines[#lines + 1], lines[#lines + 2] = line, id
    end
    if s then
      s.attempts, s.lost, s.interrupted, s.snoozes = 0, 0, 0, 0
      states[#states + 1] = id
      states[#states + 1] = state_text(s)
    end
  end
end

-- Apply.
if #moved > 0 then
  dead_out(k, moved)
  if #states > 0 then
    redis.call('HSET', state, unpack(states))
  end
  if #keys > 0 then
    redis.call('HSET', unique, unpack(keys))
  end
  local go, wait = moved, {}
  if #lines > 0 then
    go, wait = order_split(k, lines, moved)
  end
  if #go > 0 then
    ready_back(k, go)
  end
  if #wait > 0 then
    delayed_add(delayed, due, wait)
    ledger_add(stats, 'deferred', #wait / 2)
  end
  if #lines > 0 then
    order_join(k, lines)
  end
  ledger_add(stats, 'replayed', #moved)
  wake_worker(k, k.paused)
end
return {'OK', digits(#moved), digits(looked), unpack(notes)}
