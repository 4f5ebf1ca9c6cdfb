--- roster: the workers and when they last beat.
--
-- @flags no-writes
-- @key workers ZSET worker -> time of its last beat, ms
-- @arg now the test clock, ms; empty: the server's
-- @arg limit at most so many, the newest first
-- @returns OK the server's time, then worker, ms of each
-- @cost O(limit)
--- @include clock

local now = clock(now_arg)
return {'OK', digits(now), unpack(redis.call('ZREVRANGE', workers, 0, limit - 1, 'WITHSCORES'))}
