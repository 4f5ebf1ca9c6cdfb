--- browse: a page of the jobs in one state.
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
-- @key order HASH lines of the order keys
-- @key errors HASH id -> last errors
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg place ready, delayed, processing, dead or done
-- @arg cursor where the last page ended; 0: from the start (ready: from the job that is next)
-- @arg limit at most so many
-- @returns OK id, score, record, state, errors of each, and of delayed ones that before it in the line of its order key; ready has no score
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, the next cursor (0: that was all), then the rows. A page ends also after
-- 256 KiB of records; of a record over 64 KiB only an empty string comes. What runs on the
-- stream engine comes in the order in which it was enqueued, else by the end of its lease.
--- @include shown
--- @include engines
--- @include parked

local LARGE, PAGE = 65536, 262144

local k = {ready = ready, tombs = tombs, processing = processing, stream = stream, ids = ids,
           claims = claims, delayed = delayed, dead = dead, kept = kept, jobs = jobs, state = state, order = order}
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local reply, rows, bytes = {'OK', '0'}, 0, 0
limit = tonumber(limit)

local function is_full()
  return rows >= limit or bytes > PAGE
end

local function row(id, score, record, text)
  rows, bytes = rows + 1, bytes + #record
  local before = ''
  if place == 'delayed' then
    before = select(2, order_link(k, id)) or ''
  end
  for _, cell in ipairs({id, score, #record <= LARGE and record or '', text,
                         redis.call('HGET', errors, id) or '', before}) do
    reply[#reply + 1] = cell
  end
end

local function stored_row(id, score)
  local size = redis.call('HSTRLEN', jobs, id)
  row(id, score, size <= LARGE and redis.call('HGET', jobs, id) or '',
      redis.call('HGET', state, id) or '')
end

-- Each of these goes on behind `at` ('': begins) and answers where it stopped, or nil at the
-- end of its structure.
local function in_list(at)
  at = at == '' and 0 or tonumber(at)
  local some = redis.call('LRANGE', ready, -at - limit, -at - 1)
  for i = #some, 1, -1 do
    if is_full() then
      return digits(at)
    end
    at = at + 1
    if redis.call('HEXISTS', tombs, some[i]) == 0 then
      stored_row(some[i], '')
    end
  end
  return #some == limit and digits(at) or nil
end

local function in_zset(key)
  return function(at)
    at = at == '' and 0 or tonumber(at)
    local some = redis.call('ZRANGE', key, at, at + limit - 1, 'WITHSCORES')
    for i = 1, #some, 2 do
      if is_full() then
        return digits(at)
      end
      at = at + 1
      stored_row(some[i], digits(math.ceil(tonumber(some[i + 1]))))
    end
    return #some == 2 * limit and digits(at) or nil
  end
end

-- Pending entries: those of _front wait, all others run.
local function in_pending(waits)
  return function(at)
    local range = {at == '' and '-' or '(' .. at, '+', limit, waits and FRONT or nil}
    local some = pending_range(k, now_arg, unpack(range))
    for _, p in ipairs(some) do
      if is_full() then
        return at
      end
      at = p[1]
      local found = (waits or p[2] ~= FRONT) and redis.call('XRANGE', stream, at, at)[1]
      if found then
        local record, id = entry_job(at, found[2])
        local text, ends = redis.call('HGET', state, id) or '', ''
        if not waits then
          text, ends = shown_held(k, id, p)
          ends = digits(ends)
        end
        row(id, ends, record, text)
      end
    end
    return #some == limit and at or nil
  end
end

-- A slice grows while its records are small: each is read whole.
local function behind_group(at)
  local group, count, some = group_info(k), 1, nil
  if at == '' then
    at = group and group['last-delivered-id'] or '0'
  end
  repeat
    some = redis.call('XRANGE', stream, '(' .. at, '+', 'COUNT', math.min(count, limit - rows))
    for _, found in ipairs(some) do
      local record, id = entry_job(found[1], found[2])
      row(id, '', record, redis.call('HGET', state, id) or '')
      at = found[1]
    end
    count = bytes > 16 * count * 1024 and 1 or 2 * count
  until #some == 0 or is_full()
  return #some > 0 and at or nil
end

local parts = ({
  ready = {{'f', in_pending(true)}, {'s', behind_group}, {'l', in_list}},
  processing = {{'p', in_pending(false)}, {'z', in_zset(processing)}},
  delayed = {{'z', in_zset(delayed)}}, dead = {{'z', in_zset(dead)}}, done = {{'z', in_zset(kept)}},
})[place]
local begun = cursor == '0'
for _, part in ipairs(parts) do
  if begun or part[1] == string.sub(cursor, 1, 1) then
    local stopped = part[2](begun and '' or string.sub(cursor, 2))
    if stopped then
      reply[2] = part[1] .. stopped
      return reply
    end
    begun = true
  end
end
return reply
