--- output: what a job printed, from an offset of one run on.
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
-- @key log HASH what jobs printed
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg id the job's id
-- @arg number of the run; empty: the last one that is kept
-- @arg offset from here on
-- @arg bytes stop when there are so many
-- @returns OK see the reply
-- @returns GONE no such job
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(bytes)
--
-- Reply: word, place, deliveries so far, how many runs are kept, then of each its number,
-- start (ms), stored bytes, end, open; then the number of the run that was read ('': none)
-- and offset, bytes of each of its pieces.
--- @include shown
--- @include log
--- @include engines

local k = {ready = ready, tombs = tombs, processing = processing, stream = stream, ids = ids,
           claims = claims, delayed = delayed, dead = dead, kept = kept, jobs = jobs, state = state}
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local place, _, told = shown(k, id, '')
if not place then
  return {'GONE'}
end
local s = state_read(told)
local runs = log_runs(redis.call('HGET', log, id))
local reply, chosen = {'OK', place, s and s.deliveries or '0', digits(#runs)}, nil
for _, r in ipairs(runs) do
  for _, value in ipairs({r.number, r.started, r.size, r.last, r.open}) do
    reply[#reply + 1] = value
  end
  if number == '' or r.number == number then
    chosen = r
  end
end
reply[#reply + 1] = chosen and chosen.number or ''
local left, from = tonumber(bytes), tonumber(offset)
for i, at in ipairs(chosen and chosen.pieces or {}) do
  local next_at = tonumber(chosen.pieces[i + 1] or chosen.last)
  if left > 0 and next_at > from then
    local skip = math.max(0, from - at)
    local text = string.sub(redis.call('HGET', log, id .. '\t' .. chosen.number .. '\t' .. at) or '',
                            skip + 1)
    if text ~= '' then
      reply[#reply + 1] = digits(at + skip)
      reply[#reply + 1] = text
      left = left - #text
    end
  end
end
return reply
