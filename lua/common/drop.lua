--- drop: removes a queue that holds nothing, with its settings and its counters.
--
-- @flags allow-oom
-- @key ready LIST list engine: ids that wait, taken from the right
-- @key tombs HASH list engine: ids cancelled while they stand in ready
-- @key processing ZSET list engine: id -> end of its lease, ms
-- @key stream STREAM stream engine: jobs that wait or run, one entry each
-- @key ids HASH stream engine: id -> entry, where they differ
-- @key next_ready LIST what a move to the other engine has copied
-- @key next_stream STREAM the same
-- @key next_ids HASH the same
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key offers ZSET worker -> since when it waits, us
-- @key producers HASH channel -> its last call
-- @key unique HASH unique key -> id that holds it
-- @key windows ZSET unique key -> end of its window, ms
-- @key waiters HASH id -> who waits for its end
-- @key progress HASH id -> last progress of a job that is over
-- @key outbox HASH token -> follow-up jobs of a delivery
-- @key order HASH lines of the order keys
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key lock STRING the leader and how often it renewed
-- @key heartbeat_promote STRING time of the last promote, ms
-- @key heartbeat_reclaim STRING time of the last reclaim, ms
-- @key cron HASH name -> entry and its last tick
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg recent ms within which a producer may repeat a call: who called then is known still
-- @arg only_look 1: nothing is removed
-- @returns OK removed; then name, value of each counter
-- @returns USED it holds something; second word: what; third: how many; nothing changed
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(producers), and what the server needs to free what was forgotten
--
-- What: ready, delayed, processing, dead, done, broken (records in no place), outbox, cron,
-- windows (of unique keys, that refuse jobs still), moving, producers. A queue that is made anew
-- begins with new counters, and its tokens with them.
--- @include clock
--- @include engines

-- Decide.
local now = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'moving')
local word = engine_known(q[1], stats, jobs, ready, stream)
if word then
  return {word}
end

local function used()
  local pending = redis.call('EXISTS', stream) == 1 and redis.call('XLEN', stream) or 0
  local waits = redis.call('LLEN', ready) - redis.call('HLEN', tombs)
  local entries = redis.call('HLEN', cron) - redis.call('HEXISTS', cron, '')
  local counts = {
    'processing', redis.call('ZCARD', processing), 'ready', math.max(waits, pending),
    'delayed', redis.call('ZCARD', delayed), 'dead', redis.call('ZCARD', dead),
    'done', redis.call('ZCARD', kept), 'broken', redis.call('HLEN', jobs),
    'outbox', redis.call('HLEN', outbox), 'moving', q[2] and 1 or 0, 'cron', entries,
    'windows', redis.call('ZCOUNT', windows, '(' .. digits(now), '+inf'),
  }
  for i = 1, #counts, 2 do
    if counts[i + 1] > 0 then
      return counts[i], counts[i + 1]
    end
  end
  local callers = 0
  for _, saved in ipairs(redis.call('HVALS', producers)) do
    if tonumber(string.match(saved, '^%d+ (%d+)') or 0) + recent > now then
      callers = callers + 1
    end
  end
  return callers > 0 and 'producers', callers
end

local what, n = used()
if what then
  return {'USED', what, digits(n)}
end

-- Apply.
local reply = {'OK', unpack(redis.call('HGETALL', stats))}
if only_look ~= '1' then
  redis.call('UNLINK', ready, tombs, processing, stream, ids, next_ready, next_stream, next_ids,
             delayed, dead, kept, jobs, state, results, errors, log, stats, claims, offers, producers,
             unique, windows, waiters, progress, outbox, order, wake, due, lock,
             heartbeat_promote, heartbeat_reclaim, cron, config)
end
return reply
