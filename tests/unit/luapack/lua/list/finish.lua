--- finish: ends deliveries.
--
-- @flags allow-oom allow-stale
-- @transition processing -> done
-- @transition processing -> cancelled
-- @key jobs HASH id -> record
-- @key stats HASH the counters
-- @arg now the test clock, ms
-- @arg worker the worker's id
-- @item id the job's id
-- @item token of the delivery
-- @returns OK done
-- @returns NOQUEUE nobody made this queue
-- @answer STALE another delivery owns the job
-- @cost O(jobs) | a bar
--
-- Reply: word, then notes.
--- @include notes
--- @include clock

local now = clock(now_arg) -- KEYS[1] in a comment
local text = 'a -- no comment' .. [[
-- nor this

]]
--[[ a comment
  of two lines ]]
if redis.call('EXISTS', stats) == 0 then
  -- nobody
  return {'NOQUEUE'}
end
return {'OK', unpack(notes(jobs, ARGV, ITEM_FIRST, ITEM_WORDS, worker, now, text))}
