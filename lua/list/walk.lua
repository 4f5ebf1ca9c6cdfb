--- walk: a slice of one structure's ids, for audit --deep.
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
-- @key unique HASH unique key -> id that holds it
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg name ready tombs processing delayed dead kept jobs state results errors log unique
-- @arg cursor where the last slice ended; 0: from the start
-- @arg limit about so many
-- @returns OK the next cursor (0: round done), then ids; of unique: key, id
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--- @include engine

local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
if name == 'ready' then
  local ids = redis.call('LRANGE', ready, cursor, cursor + limit - 1)
  local more = #ids == tonumber(limit)
  return {'OK', more and string.format('%.0f', cursor + limit) or '0', unpack(ids)}
end
local zset = ({processing = processing, delayed = delayed, dead = dead, kept = kept})[name]
local hash = ({tombs = tombs, jobs = jobs, state = state, results = results, errors = errors,
               log = log, unique = unique})[name]
local reply = {'OK', ''}
if name == 'log' then -- big values: few at once; a job once, by its index or for want of it
  local slice = redis.call('HSCAN', log, cursor, 'COUNT', math.ceil(limit / 8))
  for i = 1, #slice[2], 2 do
    local field = slice[2][i]
    local id = string.match(field, '^([^\t]+)\t') or
      string.match(slice[2][i + 1], '^([^\t]+)\t%d+$')
    if not string.find(field, '\t', 1, true) then
      reply[#reply + 1] = field
    elseif id and redis.call('HEXISTS', log, id) == 0 then
      reply[#reply + 1] = id
    end
  end
  reply[2] = slice[1]
  return reply
end
local slice = redis.call(zset and 'ZSCAN' or 'HSCAN', zset or hash, cursor, 'COUNT', limit)
reply[2] = slice[1]
for i = 1, #slice[2], 2 do
  reply[#reply + 1] = slice[2][i]
  if name == 'unique' then
    reply[#reply + 1] = slice[2][i + 1]
  end
end
return reply
