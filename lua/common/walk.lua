--- walk: a slice of one structure's ids, for audit --deep.
--
-- @flags no-writes
-- @key ready LIST list engine: ids that wait, taken from the right
-- @key tombs HASH list engine: ids cancelled while they stand in ready
-- @key processing ZSET list engine: id -> end of its lease, ms
-- @key stream STREAM stream engine: jobs that wait or run, one entry each
-- @key ids HASH stream engine: id -> entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key order HASH lines of the order keys
-- @key unique HASH unique key -> id that holds it
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg name ready tombs processing stream pending ids delayed dead kept jobs state results errors log unique order
-- @arg cursor where the last slice ended; 0: from the start
-- @arg limit about so many
-- @returns OK the next cursor (0: round done), then ids; of unique: key, id; of stream, pending and ids: id, fault, entry
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- For the faults of entries see lua/include/stray.lua; no_body: it is pending and was deleted.
-- An entry that is in order has an empty fault; of pending and ids only the faults come.
--- @include stray
--- @include engines

local k = {stream = stream, ids = ids}
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end

local function walk_pending(reply)
  local some = pending_range(k, '', cursor == '0' and '-' or '(' .. cursor, '+', limit)
  for _, p in ipairs(some) do
    if #redis.call('XRANGE', stream, p[1], p[1]) == 0 then
      reply[#reply + 1] = 'lost-' .. p[1]
      reply[#reply + 1] = 'no_body'
      reply[#reply + 1] = p[1]
    end
  end
  reply[2] = #some == tonumber(limit) and some[#some][1] or '0'
  return reply
end

local function tell(reply, at, list)
  reply[2] = at
  for _, found in ipairs(list) do
    for _, cell in ipairs(found) do
      reply[#reply + 1] = cell
    end
  end
  return reply
end

if name == 'stream' then
  return tell({'OK'}, stray_entries(k, cursor, limit))
elseif name == 'ids' then
  return tell({'OK'}, stray_ids(k, cursor, limit))
elseif name == 'pending' then
  return walk_pending({'OK', '0'})
end
if name == 'ready' then
  local ids = redis.call('LRANGE', ready, cursor, cursor + limit - 1)
  local more = #ids == tonumber(limit)
  return {'OK', more and string.format('%.0f', cursor + limit) or '0', unpack(ids)}
end
if name == 'order' then -- the ids that stand in lines
  local some, found = redis.call('HSCAN', order, cursor, 'COUNT', limit), {'OK'}
  found[2] = some[1]
  for i = 1, #some[2], 2 do
    found[#found + 1] = string.match(some[2][i], '^=(.+)$')
  end
  return found
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
