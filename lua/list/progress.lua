--- progress: a handler says how far it is.
--
-- @transition processing -> processing
-- @key processing ZSET id -> end of its lease, ms
-- @key state HASH id -> what changes
-- @arg worker the worker's id
-- @arg id the job's id
-- @arg token of the delivery
-- @arg text one line: percent, stage, message
-- @returns OK written
-- @returns CANCEL written, and the job was cancelled: stop it
-- @returns ANSWERED this delivery was answered before; nothing changed
-- @returns STALE another delivery owns the job; nothing changed
-- @returns GONE no such job; nothing changed
-- @cost O(1)
--- @include state

-- Decide.
local before = redis.call('HGET', state, id)
local word = held_word(before, redis.call('ZSCORE', processing, id), token, worker)
if word then
  return {word}
end

-- Apply.
local s = state_read(before)
s.progress = string.gsub(string.sub(text, 1, 1024), '%c', ' ')
redis.call('HSET', state, id, state_text(s))
return {s.flag == 'c' and 'CANCEL' or 'OK'}
