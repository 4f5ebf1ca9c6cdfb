--- locate: in which structures these ids are, for audit --deep.
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
-- @key order HASH lines of the order keys
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg scan 1: also count the places in the list ready (walks it; for few ids)
-- @item id the job's id
-- @returns OK a word an item; perhaps not of the last ones
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(ids); with scan O(ids * ready)
--
-- The word is made of letters: J record, S state, T tombstone, P processing,
-- L delayed, X dead, K kept, W parked in delayed, F the first of the line of its order key,
-- O in such a line behind another, and one R for each place in ready. An entry of the stream
-- is R or P as well, without any scan; its job needs no J. To find it its record is read: the
-- reply ends after 4 MiB of records, and who wants the words of the other ids calls again.
--- @include entry
--- @include group
--- @include engines
--- @include parked

local BYTES = 4194304

local k = {stream = stream, ids = ids, order = order}
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local reply, bytes = {'OK'}, 0
for i = ITEM_FIRST, #ARGV do
  local id, letters = ARGV[i], ''
  if bytes > BYTES then
    break
  end
  for letter, key in pairs({J = jobs, S = state, T = tombs}) do
    if redis.call('HEXISTS', key, id) == 1 then
      letters = letters .. letter
    end
  end
  for letter, key in pairs({P = processing, L = delayed, X = dead, K = kept}) do
    if redis.call('ZSCORE', key, id) then
      letters = letters .. letter
    end
  end
  local entry, record = entry_of(k, id)
  k.entries = nil -- not so many records at once
  if entry then
    bytes = bytes + #record
    local p = pending_range(k, '', entry, entry, 1)[1]
    letters = letters .. (p and p[2] ~= FRONT and 'P' or 'R')
  end
  local line, before = order_link(k, id)
  if line then
    letters = letters .. (before == '' and 'F' or 'O')
  end
  if tonumber(redis.call('ZSCORE', delayed, id) or 0) >= PARKED then
    letters = letters .. 'W'
  end
  if scan == '1' then
    letters = letters .. string.rep('R', #redis.call('LPOS', ready, id, 'COUNT', 3))
  end
  reply[#reply + 1] = letters
end
return reply
