--- promote: moves due jobs from delayed to ready.
--
-- @flags allow-oom
-- @transition delayed -> ready
-- @key delayed ZSET id -> due time, ms
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
-- @key wake LIST the marker that wakes one worker
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @key heartbeat_promote STRING promotion is alive
-- @arg now the test clock, ms; empty: the server's
-- @arg limit at most so many
-- @returns OK nothing more is due
-- @returns MORE call again at once
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit * log delayed)
--
-- Reply: word, how many moved, microseconds until the next is due (-1: none).
--- @include clock
--- @include engine
--- @include ledger
--- @include ready
--- @include wake
--- @include touch

-- Decide.
local now, _, now_us = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused')
local word = engine_word(q[1], stats, delayed, ready)
if word then
  return {word}
end
touch('LLEN', ready, wake)
touch('HLEN', tombs, stats)
local ids = redis.call('ZRANGEBYSCORE', delayed, '-inf', now_us / 1000, 'LIMIT', 0, limit)

-- Apply.
if #ids > 0 then
  redis.call('ZREM', delayed, unpack(ids))
  ready_back(ready, tombs, ids)
  ledger_add(stats, 'promoted', #ids)
end
redis.call('SET', heartbeat_promote, digits(now), 'EX', 30)
wake_worker(wake, ready, tombs, q[2])
local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local left = head and math.ceil(tonumber(head) * 1000 - now_us) or -1
if head and left <= 0 then
  return {'MORE', digits(#ids), '0'}
end
return {'OK', digits(#ids), digits(left)}
