--- browse: a page of the jobs in one state.
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
-- @key errors HASH id -> last errors
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg place ready, delayed, processing, dead or done
-- @arg offset skip so many (ready: from the one that is next)
-- @arg limit at most so many
-- @returns OK id, score, record, state, errors of each; ready has no score
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, how many places were looked at (where the next page starts), then
-- the rows. Of a record over 64 KiB only an empty string comes.
--- @include engine

local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
local reply, looked, bytes = {'OK', '0'}, 0, 0

local function row(id, score)
  local size = redis.call('HSTRLEN', jobs, id)
  local record = size <= 65536 and redis.call('HGET', jobs, id) or ''
  looked, bytes = looked + 1, bytes + #record
  for _, word in ipairs({id, score, record, redis.call('HGET', state, id) or '',
                         redis.call('HGET', errors, id) or ''}) do
    reply[#reply + 1] = word
  end
end

if place == 'ready' then
  local ids = redis.call('LRANGE', ready, -offset - limit, -offset - 1)
  for i = #ids, 1, -1 do
    if bytes > 262144 then
      break
    elseif redis.call('HEXISTS', tombs, ids[i]) == 1 then
      looked = looked + 1
    else
      row(ids[i], '')
    end
  end
else
  local key = ({delayed = delayed, processing = processing, dead = dead, done = kept})[place]
  local page = redis.call('ZRANGE', key, offset, offset + limit - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    if bytes > 262144 then
      break
    end
    row(page[i], string.format('%.0f', math.ceil(tonumber(page[i + 1]))))
  end
end
reply[2] = string.format('%.0f', looked)
return reply
