--- create: makes a queue, or sets its limits.
--
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST ids that wait, taken from the right
-- @key stream STREAM the jobs that wait and run
-- @key config HASH engine, limits, paused
-- @arg mark random: names the queue if this call makes it
-- @item name engine (list or stream; it stays), engine_if_new, payload_max, kept_max, kept_bytes_max, dead_max, dead_age_max, dead_bytes_max, log_bytes_max, retry, backoff, keep_progress
-- @item value what the setting says; empty: the default again
-- @returns MADE the queue is new
-- @returns AGAIN it was there; the limits are set
-- @returns ENGINE the queue is stored by another engine than asked for; nothing changed
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--- @include engines

local engine, wanted = redis.call('HGET', config, 'engine'), 'list'
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  if ARGV[i] == 'engine' then
    wanted = ARGV[i + 1]
    if engine and engine ~= wanted or not ENGINES[wanted] then
      return {'ENGINE', engine or wanted}
    end
  elseif ARGV[i] == 'engine_if_new' and ENGINES[ARGV[i + 1]] then
    wanted = ARGV[i + 1]
  end
end
local word = engine_known(engine, stats, jobs, ready, stream)
if word == 'CORRUPT' then
  return {'CORRUPT'}
elseif word == 'ENGINE' then
  return {'ENGINE', engine}
end
if word then
  redis.call('HSET', config, 'engine', wanted, 'made', mark)
end
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  if string.find(ARGV[i], '^engine') then -- it stays
  elseif ARGV[i + 1] == '' then
    redis.call('HDEL', config, ARGV[i])
  else
    redis.call('HSET', config, ARGV[i], ARGV[i + 1])
  end
end
return {word and 'MADE' or 'AGAIN'}
