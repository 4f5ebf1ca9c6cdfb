--- progress: a handler says how far it is.
--
-- @transition processing -> processing
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key state HASH id -> what changes
-- @arg worker the worker's id
-- @arg id the job's id
-- @arg token of the delivery
-- @arg text one line: percent, stage, message
-- @arg keep how long it is kept after the end of the job, ms; empty: as long as the job
-- @returns OK written
-- @returns CANCEL written, and the job was cancelled: stop it
-- @returns ANSWERED this delivery was answered before; nothing changed
-- @returns STALE another delivery owns the job; nothing changed
-- @returns GONE no such job; nothing changed
-- @cost O(1)
--- @include held

-- Decide.
local texts, words = held_look(k, {id}, {token}, worker)
if words[1] then
  return {words[1]}
end

-- Apply.
local s = state_read(texts[1])
s.progress = string.gsub(string.sub(text, 1, 1024), '%c', ' ')
if keep ~= '' then
  s.progress = 'keep=' .. keep .. ' ' .. s.progress
  s.flag = s.flag == '-' and 'p' or s.flag -- the end of the job looks at it: see progress_over.lua
end
redis.call('HSET', state, id, state_text(s))
return {s.flag == 'c' and 'CANCEL' or 'OK'}
