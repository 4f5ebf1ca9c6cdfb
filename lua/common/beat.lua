--- beat: a worker says that it is alive.
--
-- @flags allow-oom
-- @key workers ZSET worker -> time of its last beat, ms
-- @arg now the test clock, ms; empty: the server's
-- @arg me the worker's id
-- @arg leave 1: it ends
-- @arg old forget workers silent for so many ms
-- @returns OK written
-- @cost O(log workers)
--- @include clock

local now = clock(now_arg)
if leave == '1' then
  redis.call('ZREM', workers, me)
else
  redis.call('ZADD', workers, now, me)
end
redis.call('ZREMRANGEBYSCORE', workers, '-inf', now - old)
return {'OK'}
