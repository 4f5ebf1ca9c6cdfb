--- order: tells a worker what to be: running, quiet or stopped.
--
-- @flags allow-oom
-- @key worker HASH the worker's fields
-- @arg now the test clock, ms; empty: the server's
-- @arg order run, quiet or stop
-- @arg by who says so
-- @arg keep the order stands for so many ms after the last beat
-- @arg grace what running jobs get when it stops, ms; empty: what the worker gives them
-- @returns OK it stands; second word: what stood before, or empty; third: the state last told
-- @returns GONE no such worker, or it was silent for so long that it is forgotten
-- @cost O(1)
--
-- stop cannot be taken back: the worker may be at it already. Its grace time can be said
-- anew.
--- @include clock

local now = clock(now_arg)
local seen = redis.call('HMGET', worker, 'started_at', 'order', 'state')
if not seen[1] then
  return {'GONE'}
end
if seen[2] ~= 'stop' then
  redis.call('HSET', worker, 'order', order, 'order_at', digits(now), 'order_by', by)
end
if order == 'stop' and grace ~= '' then
  redis.call('HSET', worker, 'order_grace', grace, 'order_at', digits(now), 'order_by', by)
end
redis.call('PEXPIRE', worker, keep)
return {'OK', seen[2] or '', seen[3] or ''}
