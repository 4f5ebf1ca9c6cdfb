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
-- @key unique HASH unique key -> id that holds it
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg name ready tombs processing stream pending ids delayed dead kept jobs state results errors log unique
-- @arg cursor where the last slice ended; 0: from the start
-- @arg limit about so many
-- @returns OK the next cursor (0: round done), then ids; of unique: key, id; of stream, pending and ids: id, fault
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- What is wrong with an entry is seen in one step, so that it is certain: unindexed, its job's
-- id leads to another entry; passed_over, the group went past it and nobody has it; no_body,
-- it is pending and was deleted; orphan_index, an id leads to no entry of that job. An entry
-- that is in order has an empty fault; of pending and ids only the faults come.
--- @include entry
--- @include group
--- @include engines

local k = {stream = stream, ids = ids}
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end

local function is_after(a, b)
  local ms, seq = string.match(a, '^(%d+)%-(%d+)$')
  local other_ms, other_seq = string.match(b, '^(%d+)%-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(seq) > tonumber(other_seq)
end

local function stream_fault(entry, id)
  local group, named = group_info(k), redis.call('HGET', ids, id)
  if named and named ~= entry or not named and id ~= entry then
    return 'unindexed'
  elseif group and not is_after(entry, group['last-delivered-id'])
      and #pending_range(k, '', entry, entry, 1) == 0 then
    return 'passed_over'
  end
  return ''
end

-- Records are read whole with their entries: a slice ends after 256 KiB of them.
local function walk_stream(reply)
  local at, count, bytes, n, some = cursor, 1, 0, 0, nil
  repeat
    some = redis.call('XRANGE', stream, '(' .. at, '+', 'COUNT', math.min(count, limit - n))
    for _, found in ipairs(some) do
      local record, id = entry_job(found[1], found[2])
      reply[#reply + 1] = id
      reply[#reply + 1] = stream_fault(found[1], id)
      at, bytes, n = found[1], bytes + #record, n + 1
    end
    count = bytes > 16 * count * 1024 and 1 or 2 * count
  until #some == 0 or n >= tonumber(limit) or bytes > 262144
  return #some > 0 and at or '0'
end

local function walk_pending(reply)
  local some = pending_range(k, '', cursor == '0' and '-' or '(' .. cursor, '+', limit)
  for _, p in ipairs(some) do
    if #redis.call('XRANGE', stream, p[1], p[1]) == 0 then
      reply[#reply + 1] = 'lost-' .. p[1]
      reply[#reply + 1] = 'no_body'
    end
  end
  return #some == tonumber(limit) and some[#some][1] or '0'
end

local function walk_ids(reply)
  local slice = redis.call('HSCAN', ids, cursor, 'COUNT', limit)
  for i = 1, #slice[2], 2 do
    if not entry_of(k, slice[2][i]) then
      reply[#reply + 1] = slice[2][i]
      reply[#reply + 1] = 'orphan_index'
    end
  end
  return slice[1]
end

local special = ({stream = walk_stream, pending = walk_pending, ids = walk_ids})[name]
if special then
  local found = {'OK', '0'}
  found[2] = special(found)
  return found
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
