--- repair: puts right what was done to a stream by hand, as far as that is certain.
--
-- @flags allow-oom
-- @transition processing -> ready
-- @key stream STREAM the jobs that wait and run
-- @key ids HASH id -> its entry, where they differ
-- @key state HASH id -> what changes
-- @key jobs HASH id -> record
-- @key ready LIST list engine: ids that wait
-- @key stats HASH the ledger's counters
-- @key wake LIST the marker that wakes one worker
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg name stream, ids; sums, at the end
-- @arg cursor where the last slice ended; 0: from the start
-- @arg limit about so many
-- @returns OK the next cursor (0: round done), how many deliveries were booked, then id, fault, entry, 1 if it was put right, of each
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- For the faults see lua/include/stray.lua. An entry that was passed over goes to the front,
-- one that nobody finds is found by its job's id again, an id that leads nowhere goes. Where
-- two entries hold one job nothing is done: a person has to say which of them counts.
-- sums: deliveries that ended without a word while their jobs wait are booked as reclaimed.
--- @include stray
--- @include stream_sizes
--- @include engines
--- @include ledger
--- @include state
--- @include touch

local k = {stream = stream, ids = ids}

-- An entry whose job is not found by its id.
local function index(id, entry)
  local named = redis.call('HGET', ids, id)
  if id == entry or named and #redis.call('XRANGE', stream, named, named) > 0 then
    return false
  end
  redis.call('HSET', ids, id, entry)
  return true
end

local function put_right(id, fault, entry, now)
  if fault == 'unindexed' then
    return index(id, entry)
  elseif fault == 'orphan_index' then
    -- Pending, and deleted: reclaim has to see that first.
    local gone = not is_entry(entry) or #pending_range(k, '', entry, entry, 1) == 0
    return gone and redis.call('HDEL', ids, id) == 1
  end
  local s = state_read(redis.call('HGET', state, id) or '')
  redis.call('XCLAIM', stream, GROUP, FRONT, 0, entry, 'TIME', claim_time(now), 'RETRYCOUNT',
             s and s.deliveries or 1, 'FORCE', 'JUSTID')
  return true
end

-- How far PROCESSING and READY are off, if by what was given out, not ended, and waits.
local function forgotten_deliveries()
  local n = {}
  for i, value in ipairs(redis.call('HMGET', stats, 'deliveries', 'done', 'retried', 'buried',
      'released', 'reclaimed', 'reclaimed_delayed', 'cancelled_processing', 'enqueued', 'scheduled',
      'promoted', 'replayed', 'shelved', 'cancelled_ready', 'expired_ready', 'lost_body_ready',
      'deferred')) do
    n[i] = tonumber(value or 0)
  end
  local waiting, held = stream_sizes(k)
  local open = n[1] - n[2] - n[3] - n[4] - n[5] - n[6] - n[7] - n[8] - held
  local over = n[1] + n[13] + n[14] + n[15] + n[16] + n[17] + waiting
    - (n[9] - n[10] + n[11] + n[5] + n[6] + n[12])
  return math.max(0, math.min(open, over))
end

-- Decide.
local now = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused')
local word = engine_known(q[1], stats, jobs, ready, stream)
if word then
  return {word}
end
touch('HLEN', stats, ids, state)
touch('LLEN', wake)
local at, list, booked, waits = '0', {}, 0, false
if name == 'stream' then
  at, list = stray_entries(k, cursor, limit)
elseif name == 'ids' then
  at, list = stray_ids(k, cursor, limit)
elseif q[1] == 'stream' then
  booked = forgotten_deliveries()
end

-- Apply.
local reply = {'OK', at, digits(booked)}
ledger_add(stats, 'reclaimed', booked)
for _, found in ipairs(list) do
  local id, fault, entry = unpack(found)
  if fault ~= '' then
    local done = put_right(id, fault, entry, now)
    waits = waits or done and fault == 'passed_over'
    for _, cell in ipairs({id, fault, entry, done and '1' or '0'}) do
      reply[#reply + 1] = cell
    end
  end
end
if waits and not q[2] and redis.call('EXISTS', wake) == 0 then
  redis.call('LPUSH', wake, '1')
end
return reply
