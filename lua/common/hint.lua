--- hint: tells a worker at once that something about its jobs changed.
--
-- @flags allow-oom
-- @key hint LIST what the worker blocks on
-- @arg text what changed
-- @returns OK told
-- @cost O(1)
--
-- Speed only: the truth is the flag in the job's state, read at each renewal.
redis.call('LPUSH', hint, text)
redis.call('LTRIM', hint, 0, 99)
redis.call('PEXPIRE', hint, 60000)
return {'OK'}
