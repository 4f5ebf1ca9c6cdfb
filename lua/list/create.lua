--- create: makes a queue, or sets its limits.
--
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST ids that wait, taken from the right
-- @key config HASH engine, limits, paused
-- @arg mark random: names the queue if this call makes it
-- @item name payload_max, kept_max, kept_bytes_max, dead_max, dead_age_max, dead_bytes_max, log_bytes_max, retry, backoff
-- @item value what the setting says; empty: the default again
-- @returns MADE the queue is new
-- @returns AGAIN it was there; the limits are set
-- @returns ENGINE the queue is stored by another engine
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--- @include engine

local engine = redis.call('HGET', config, 'engine')
local word = engine_word(engine, stats, jobs, ready)
if word == 'ENGINE' then
  return {'ENGINE', engine}
elseif word == 'CORRUPT' then
  return {'CORRUPT'}
end
if word then
  redis.call('HSET', config, 'engine', 'list', 'made', mark)
end
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', config, ARGV[i])
  else
    redis.call('HSET', config, ARGV[i], ARGV[i + 1])
  end
end
return {word and 'MADE' or 'AGAIN'}
