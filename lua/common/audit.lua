--- audit: all sizes and counters of a queue, in one read: exact on a live queue.
--
-- @flags no-writes
-- @key ready LIST list engine: ids that wait, taken from the right
-- @key tombs HASH list engine: ids cancelled while they stand in ready
-- @key processing ZSET list engine: id -> end of its lease, ms
-- @key stream STREAM stream engine: jobs that wait or run, one entry each
-- @key ids HASH stream engine: id -> entry, where they differ
-- @key claims HASH worker -> its last reserve
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
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1 + consumers)
--
-- Reply: word, then names and values: the sizes, every counter of stats, and what
-- status shows. bodies is how many records there must be. oldest_ready is when the job that
-- is next was enqueued.
--- @include clock
--- @include claims
--- @include entry
--- @include stream_sizes
--- @include engines
--- @include parked

local LEASE_MS, STUCK_MAX = 15000, 1000

local k = {stream = stream, ids = ids}
local now = clock(now_arg)
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local reply = {'OK'}
local function say(name, value)
  reply[#reply + 1] = name
  reply[#reply + 1] = type(value) == 'number' and digits(value) or value or ''
end

-- When the job that is next in the list was enqueued.
local function oldest_in_list()
  local heads = redis.call('LRANGE', ready, -100, -1)
  for i = #heads, 1, -1 do
    local size = redis.call('HSTRLEN', jobs, heads[i])
    if size > 0 then
      return size < 65536 and string.match(redis.call('HGET', jobs, heads[i]), '^%d+ %S+ (%d+)')
    end
  end
end

-- The same for the stream: one of _front, else the one behind the group's last.
local function oldest_in_stream(group)
  local front = group and pending_range(k, now_arg, '-', '+', 1, FRONT)[1]
  local found = redis.call('XRANGE', stream, front and front[1]
    or '(' .. (group and group['last-delivered-id'] or '0'), front and front[1] or '+', 'COUNT', 1)[1]
  return found and string.match(entry_job(found[1], found[2]), '^%d+ %S+ (%d+)')
end

-- Deliveries whose lease is over by more than the longest one that workers commonly have.
local function stuck_in_stream(group)
  local stuck, leases = 0, {}
  local idle = now_arg == '' and {'IDLE', LEASE_MS} or {}
  idle[#idle + 1], idle[#idle + 2], idle[#idle + 3] = '-', '+', STUCK_MAX
  for _, p in ipairs(group and pending_range(k, now_arg, unpack(idle)) or {}) do
    local worker = consumer_parts(p[2])
    if not leases[worker] then
      local _, _, lease = claims_of(claims, worker)
      leases[worker] = lease or LEASE_MS
    end
    if p[2] ~= FRONT and p[3] + leases[worker] <= now then
      stuck = stuck + 1
    end
  end
  return stuck
end

local group = group_info(k)
local waiting, held = stream_sizes(k)
local in_list = redis.call('LLEN', ready) - redis.call('HLEN', tombs)
local leased = redis.call('ZCARD', processing)
local aside = redis.call('ZCARD', delayed) + redis.call('ZCARD', dead) + redis.call('ZCARD', kept)
local next_due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local parked = redis.call('ZCOUNT', delayed, digits(PARKED), '+inf')
local next_lease = redis.call('ZRANGE', processing, 0, 0, 'WITHSCORES')[2]
say('now', now)
say('ready', in_list + waiting)
say('tombs', redis.call('HLEN', tombs))
say('processing', leased + held)
say('delayed', redis.call('ZCARD', delayed))
say('dead', redis.call('ZCARD', dead))
say('kept', redis.call('ZCARD', kept))
say('jobs', redis.call('HLEN', jobs))
-- While a queue moves to another engine records are copied: how many there must be is open.
say('bodies', redis.call('HEXISTS', config, 'moving') == 1 and redis.call('HLEN', jobs)
    or in_list + leased + aside)
say('states', redis.call('HLEN', state))
say('overdue', redis.call('ZCOUNT', delayed, '-inf', now))
say('stuck', redis.call('ZCOUNT', processing, '-inf', now) + stuck_in_stream(group))
say('parked', parked)
say('next_due', next_due and tonumber(next_due) < PARKED and math.ceil(tonumber(next_due)) or '')
say('next_lease', next_lease or '')
say('oldest_ready', oldest_in_list() or oldest_in_stream(group))
say('heartbeat_promote', redis.call('GET', heartbeat_promote) or '')
say('heartbeat_reclaim', redis.call('GET', heartbeat_reclaim) or '')
for _, hash in ipairs({config, stats}) do
  local all = redis.call('HGETALL', hash)
  for i = 1, #all, 2 do
    say((hash == config and 'config.' or 'stats.') .. all[i], all[i + 1])
  end
end
return reply
