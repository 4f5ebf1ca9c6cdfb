--- sweep: trims what outlives its use: channels, claims, offers, windows, waiters, consumers, progress. Mends
-- lines of order keys whose jobs were deleted by hand, or ended by scripts that knew no lines.
--
-- @flags allow-oom
-- @key producers HASH channel -> its last call
-- @key claims HASH worker -> its last reserve
-- @key offers ZSET worker -> since when it waits, us
-- @key windows ZSET unique key -> end of its window, ms
-- @key waiters HASH id -> who waits for its end
-- @key progress HASH id -> last progress of a job that is over
-- @key state HASH id -> what changes
-- @key stream:ids HASH id -> its entry, where they differ
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key dead ZSET id -> time of death, ms
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key wake LIST the marker that wakes one worker
-- @key delayed ZSET id -> due time, ms
-- @key jobs HASH id -> record
-- @key stats HASH the ledger's counters
-- @key stream:stream STREAM the jobs that wait and run
-- @key list:ready LIST ids that wait, taken from the right
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg idle forget channels and claims not used for so many ms
-- @arg cursor_producers where the last slice ended; 0: from the start
-- @arg cursor_claims the same
-- @arg limit about so many of each
-- @returns OK one slice done
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- None of them is counted by the ledger. Reply: word, the two cursors (0: round
-- done), how many were removed; consumers, idle by the server's own time, are not counted.
--- @include clock
--- @include opens
--- @include consumers
--- @include touch
--- @include stand
--- @include order

local PROGRESS_MAX = 100000 -- jobs that are over and whose progress is kept

-- Decide.
local now = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
touch('HLEN', producers, claims, waiters, progress)
touch('ZCARD', windows, offers, dead, kept)
order_touch(k)
local unused = consumers_idle(k, tonumber(idle))
local removed = 0

-- Apply.
local function trim(key, cursor)
  local slice = redis.call('HSCAN', key, cursor, 'COUNT', limit)
  for i = 1, #slice[2], 2 do
    local used = string.match(slice[2][i + 1], '^%d+ (%d+)')
    if not used or now - used > tonumber(idle) then
      redis.call('HDEL', key, slice[2][i])
      removed = removed + 1
    end
  end
  return slice[1]
end

local at_producers = trim(producers, cursor_producers)
local at_claims = trim(claims, cursor_claims)
local over = redis.call('ZRANGEBYSCORE', windows, '-inf', now, 'LIMIT', 0, limit)
if #over > 0 then
  redis.call('ZREM', windows, unpack(over))
end
redis.call('ZREMRANGEBYSCORE', offers, '-inf', digits((now - idle) * 1000))
-- Of those who gave up waiting; some of them at a time is enough.
local some = redis.call('HRANDFIELD', waiters, limit, 'WITHVALUES')
for i = 1, #some, 2 do
  local last = 0
  for untl in string.gmatch(some[i + 1], '%S+ (%d+)') do
    last = math.max(last, tonumber(untl))
  end
  if last <= now then
    redis.call('HDEL', waiters, some[i])
  end
end

-- Nobody is told what is too old (inspect.lua), so here too some at a time is enough.
local function trim_progress()
  local over, gone = redis.call('HLEN', progress) - PROGRESS_MAX, {}
  local kept_so_far = redis.call('HRANDFIELD', progress, limit, 'WITHVALUES')
  for i = 1, #kept_so_far, 2 do
    if #gone < over or tonumber(string.match(kept_so_far[i + 1], '^%d+') or 0) <= now then
      gone[#gone + 1] = kept_so_far[i]
    end
  end
  if #gone > 0 then
    redis.call('HDEL', progress, unpack(gone))
  end
  return #gone
end

-- Who stands in a line and will not leave it: its job is over, or its body is gone.
local function is_over(id)
  local place = stand_of(k, id, now_arg)
  return not place or place == 'dead' or place == 'done'
    or place == 'delayed' and redis.call('HEXISTS', jobs, id) == 0
end

local function mend_lines()
  local at = redis.call('HGET', stats, 'order_at')
  local slice = redis.call('HSCAN', order, at or '0', 'COUNT', limit)
  local gone = {}
  for i = 1, #slice[2], 2 do
    local id = string.match(slice[2][i], '^=(.+)$')
    if id and is_over(id) then
      gone[#gone + 1] = id
    end
  end
  table.sort(gone)
  for _, id in ipairs(gone) do
    order_leave(k, id)
    order_let_in(k, id) -- reserve will find that its body is lost
  end
  if slice[1] ~= '0' then
    redis.call('HSET', stats, 'order_at', slice[1])
  elseif at then
    redis.call('HDEL', stats, 'order_at')
  end
  return #gone
end

-- Their lines are gone (evicted): they wait for nobody.
local function free_parked()
  local ids = redis.call('ZRANGEBYSCORE', delayed, digits(PARKED), '+inf', 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    order_let_in(k, id)
  end
  return #ids
end

removed = removed + (redis.call('EXISTS', order) == 1 and mend_lines() or free_parked())
consumers_remove(k, unused)
removed = removed + #over + trim_progress()
return {'OK', at_producers, at_claims, digits(removed)}
