--- forget: removes finished jobs whose result was kept long enough.
--
-- @flags allow-oom
-- @transition done -> none
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key unique HASH unique key -> id that holds it
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg limit at most so many
-- @arg count_max keep no more than so many; the ones to be forgotten first go
-- @arg bytes_max keep no more than so many bytes of them
-- @returns OK nothing more to forget
-- @returns MORE call again at once
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit * log kept)
--
-- Reply: word, how many, ms until the next (-1: none).
--- @include clock
--- @include ledger
--- @include remove
--- @include unique
--- @include engines
--- @include touch

local k = {jobs = jobs, state = state, results = results, errors = errors, log = log, stats = stats, }

-- Decide.
local now = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'kept_max', 'kept_bytes_max')
local word = engine_known(q[1], stats, jobs, kept)
if word then
  return {word}
end
touch('HLEN', jobs, state, results, errors, log, unique)
local bytes = tonumber(redis.call('HGET', stats, 'kept_bytes') or '0')
local over = redis.call('ZCARD', kept) - tonumber(q[2] or count_max)
local too_much = bytes - tonumber(q[3] or bytes_max)
local next_ones = redis.call('ZRANGE', kept, 0, limit - 1, 'WITHSCORES')
local ids, freed = {}, 0
for i = 1, #next_ones, 2 do
  if tonumber(next_ones[i + 1]) > now and #ids >= over and freed >= too_much then
    break
  end
  ids[#ids + 1] = next_ones[i]
  freed = freed + redis.call('HSTRLEN', jobs, next_ones[i])
    + redis.call('HSTRLEN', results, next_ones[i])
end

-- Apply.
if #ids > 0 then
  redis.call('ZREM', kept, unpack(ids))
  unique_free_all(unique, state, ids)
  remove_jobs(k, ids)
  if freed > 0 then -- Lua's -0 is no integer to Redis
    redis.call('HINCRBY', stats, 'kept_bytes', -freed)
  end
  ledger_add(stats, 'forgotten', #ids)
end
local head = redis.call('ZRANGE', kept, 0, 0, 'WITHSCORES')[2]
if not head and bytes > freed then -- records of kept jobs were deleted by hand
  redis.call('HSET', stats, 'kept_bytes', '0')
end
local left = head and math.max(0, tonumber(head) - now) or -1
return {#ids == tonumber(limit) and 'MORE' or 'OK', digits(#ids), digits(left)}
