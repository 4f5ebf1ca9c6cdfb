--- inspect: all that is known of one job.
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
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg id the job's id
-- @arg bytes at most so many of the record and of the result
-- @returns OK found
-- @returns GONE no such job
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- Reply: word, the server's time, place (ready, delayed, processing, dead, done),
-- score of that place, record, its full length, state, result, its full length,
-- errors, log.
--- @include clock
--- @include engine

local now = clock(now_arg)
local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
if redis.call('HEXISTS', jobs, id) == 0 then
  return {'GONE', digits(now)}
end
local place, score = 'ready', ''
for name, key in pairs({processing = processing, delayed = delayed, dead = dead, done = kept}) do
  local found = redis.call('ZSCORE', key, id)
  if found then
    place, score = name, digits(math.ceil(tonumber(found)))
  end
end
if place == 'ready' and redis.call('HEXISTS', tombs, id) == 1 then
  place = 'broken'
end
local record, result = redis.call('HGET', jobs, id), redis.call('HGET', results, id) or ''
return {'OK', digits(now), place, score, string.sub(record, 1, bytes), digits(#record),
        redis.call('HGET', state, id) or '', string.sub(result, 1, bytes), digits(#result),
        redis.call('HGET', errors, id) or '', redis.call('HGET', log, id) or ''}
