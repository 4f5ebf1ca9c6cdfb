--- beat: a worker says that it is alive.
--
-- @flags allow-oom
-- @key workers ZSET worker -> time of its last beat, ms
-- @arg now the test clock, ms; empty: the server's
-- @arg me the worker's id
-- @arg leave 1: it ends
-- @arg old forget workers silent for so many ms
-- @returns OK written
-- @cost O(log workers), and 1000 forgotten ones at most
--- @include clock

local now = clock(now_arg)
local gone = redis.call('ZRANGEBYSCORE', workers, '-inf', now - old, 'LIMIT', 0, 1000)
if leave == '1' then
  redis.call('ZREM', workers, me)
else
  redis.call('ZADD', workers, now, me)
end
if #gone > 0 then
  redis.call('ZREM', workers, unpack(gone))
end
return {'OK'}
