--- audit: all sizes and counters of a queue, in one read: exact on a live queue.
--
-- @flags no-writes
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
-- @key processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @key heartbeat_promote STRING promotion is alive
-- @key heartbeat_reclaim STRING reclaim is alive
-- @arg now the test clock, ms; empty: the server's
-- @returns OK name, value, name, value, ...
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- Reply: word, then names and values: the sizes, every counter of stats, and what
-- status shows. oldest_ready is when the job that is next was enqueued.
--- @include clock
--- @include engine

local now = clock(now_arg)
local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
local reply = {'OK'}
local function say(name, value)
  reply[#reply + 1] = name
  reply[#reply + 1] = type(value) == 'number' and digits(value) or value or ''
end

local heads = redis.call('LRANGE', ready, -100, -1)
local oldest
for i = #heads, 1, -1 do
  local size = redis.call('HSTRLEN', jobs, heads[i])
  if size > 0 then
    if size < 65536 then
      oldest = string.match(redis.call('HGET', jobs, heads[i]), '^%d+ %S+ (%d+)')
    end
    break
  end
end
local next_due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local next_lease = redis.call('ZRANGE', processing, 0, 0, 'WITHSCORES')[2]
say('now', now)
say('ready', redis.call('LLEN', ready) - redis.call('HLEN', tombs))
say('tombs', redis.call('HLEN', tombs))
say('processing', redis.call('ZCARD', processing))
say('delayed', redis.call('ZCARD', delayed))
say('dead', redis.call('ZCARD', dead))
say('kept', redis.call('ZCARD', kept))
say('jobs', redis.call('HLEN', jobs))
say('states', redis.call('HLEN', state))
say('overdue', redis.call('ZCOUNT', delayed, '-inf', now))
say('stuck', redis.call('ZCOUNT', processing, '-inf', now))
say('next_due', next_due and math.ceil(tonumber(next_due)) or '')
say('next_lease', next_lease or '')
say('oldest_ready', oldest)
say('heartbeat_promote', redis.call('GET', heartbeat_promote) or '')
say('heartbeat_reclaim', redis.call('GET', heartbeat_reclaim) or '')
for _, hash in ipairs({config, stats}) do
  local all = redis.call('HGETALL', hash)
  for i = 1, #all, 2 do
    say((hash == config and 'config.' or 'stats.') .. all[i], all[i + 1])
  end
end
return reply
