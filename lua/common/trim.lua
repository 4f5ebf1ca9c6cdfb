--- trim: removes the oldest dead jobs of a queue that has too many, too old or too large.
--
-- @flags allow-oom
-- @transition dead -> none
-- @key dead ZSET id -> time of death, ms
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
-- @arg count_max keep no more than so many; 0: no limit
-- @arg age_max none that died longer ago than this, ms; 0: no limit
-- @arg bytes_max no more than so many bytes of them; 0: no limit
-- @returns OK the limits hold
-- @returns MORE call again at once
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit * log dead)
--
-- dead_max, dead_age_max and dead_bytes_max of the config go before the arguments. Booked
-- as purged; trimmed says how many of them were. Reply: word, how many.
--- @include clock
--- @include dead
--- @include ledger
--- @include unique
--- @include remove
--- @include engines
--- @include touch

local TRIM_BYTES = 4194304

local k = {dead = dead, jobs = jobs, state = state, results = results, errors = errors, log = log, stats = stats, }

-- Decide.
local now = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'dead_max', 'dead_age_max', 'dead_bytes_max')
local word = engine_known(q[1], stats, jobs, dead)
if word then
  return {word}
end
touch('HLEN', jobs, state, results, errors, log, unique)
local most, age, most_bytes = tonumber(q[2] or count_max), tonumber(q[3] or age_max),
                              tonumber(q[4] or bytes_max)
local over = most > 0 and redis.call('ZCARD', dead) - most or 0
local bytes = tonumber(redis.call('HGET', stats, 'dead_bytes') or '0')
local oldest = redis.call('ZRANGE', dead, 0, limit - 1, 'WITHSCORES')
local ids, freed = {}, 0
for i = 1, #oldest, 2 do
  local old = age > 0 and oldest[i + 1] + age <= now
  local large = most_bytes > 0 and bytes - freed > most_bytes
  if not (#ids < over or old or large) or freed > TRIM_BYTES then
    break
  end
  ids[#ids + 1] = oldest[i]
  freed = freed + dead_size(k, {oldest[i]})
end

-- Apply.
if #ids > 0 then
  dead_out(k, ids)
  unique_free_all(unique, state, ids)
  remove_jobs(k, ids)
  ledger_add(stats, 'purged', #ids)
  ledger_add(stats, 'trimmed', #ids)
end
local more = #ids == tonumber(limit) or freed > TRIM_BYTES
return {more and 'MORE' or 'OK', digits(#ids)}
