--- outbox: follow-up jobs that nobody has enqueued so far.
--
-- @flags no-writes
-- @key outbox HASH token -> follow-up jobs to be enqueued
-- @key jobs HASH id -> record
-- @key stats HASH the ledger's counters
-- @key ready LIST list engine: ids that wait
-- @key stream STREAM stream engine: jobs that wait or run
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg age only those that wait for so many ms: their worker is dead or slow
-- @arg limit at most so many
-- @returns OK these, or none
-- @returns MORE there are others: too young, or over the limit or 1 MiB
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, then token, text of each.
--- @include clock
--- @include engines

local now = clock(now_arg)
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local BYTES = 1048576 -- of texts, and one text more at most
local reply, bytes = {'OK'}, 0
local some = redis.call('HRANDFIELD', outbox, limit)
for i = 0, #some - 1 do -- from another one each time: the first may be past help
  local token = some[(i + now) % #some + 1]
  local value = redis.call('HGET', outbox, token)
  local since, text = string.match(value, '^(%d+)\n(.*)$')
  if not since or now - since >= tonumber(age) then
    reply[#reply + 1] = token
    reply[#reply + 1] = text or value -- who cannot read it says so
    bytes = bytes + #value
  end
  if bytes >= BYTES then
    break
  end
end
if (#reply - 1) / 2 < redis.call('HLEN', outbox) then
  reply[1] = 'MORE'
end
return reply
