--- cron_list: the entries of a queue: one by name with its payload, or a slice of all without.
--
-- @flags no-writes
-- @key cron HASH name -> entry and its last tick
-- @key stats HASH the ledger's counters
-- @key jobs HASH id -> record
-- @key ready LIST list engine: ids that wait
-- @key stream STREAM stream engine: jobs that wait or run
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg version what the caller has; still the same: SAME, and no entries
-- @arg cursor where the last slice ended; 0: from the start
-- @arg limit about so many
-- @item name only this entry
-- @returns OK name and entry of each follow
-- @returns SAME nothing changed
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, version, the server's time in us, cursor (0: that was all), then name, entry, ...
-- What cannot be read as an entry comes as it is.
--- @include cron
--- @include engines

local _, _, us = clock(now_arg)
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local now_version = redis.call('HGET', cron, '') or ''
if version ~= '' and version == now_version then
  return {'SAME', now_version, digits(us), '0'}
end
local reply = {'OK', now_version, digits(us), '0'}
if #ARGV >= ITEM_FIRST then
  for i = ITEM_FIRST, #ARGV do
    local text = redis.call('HGET', cron, ARGV[i])
    if text then
      reply[#reply + 1] = ARGV[i]
      reply[#reply + 1] = text
    end
  end
  return reply
end
local slice = redis.call('HSCAN', cron, cursor, 'COUNT', limit)
reply[4] = slice[1]
for i = 1, #slice[2], 2 do
  local name, text = slice[2][i], slice[2][i + 1]
  if name ~= '' then
    reply[#reply + 1] = name
    reply[#reply + 1] = string.match(text, '^[^\n]*\n[^\n]*\n[^\n]*\n') or text
  end
end
return reply
