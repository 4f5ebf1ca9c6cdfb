--- outbox: follow-up jobs that nobody has enqueued so far.
--
-- @flags no-writes
-- @key outbox HASH token -> follow-up jobs to be enqueued
-- @key jobs HASH id -> record
-- @key stats HASH the ledger's counters
-- @key ready LIST ids that wait, taken from the right
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg age only those that wait for so many ms: their worker is dead or slow
-- @arg limit at most so many
-- @returns OK these, or none
-- @returns MORE there are others that are too young, or over the limit
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, then token, text of each.
--- @include clock
--- @include engine

local now = clock(now_arg)
local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
local reply = {'OK'}
local some = redis.call('HRANDFIELD', outbox, limit, 'WITHVALUES')
for i = 1, #some, 2 do
  local since, text = string.match(some[i + 1], '^(%d+)\n(.*)$')
  if since and now - since >= tonumber(age) then
    reply[#reply + 1] = some[i]
    reply[#reply + 1] = text
  end
end
if (#reply - 1) / 2 < redis.call('HLEN', outbox) then
  reply[1] = 'MORE'
end
return reply
