--- offer: an idle worker that begins to wait says that it would make this call of reserve.
--
-- @flags allow-oom
-- @transition ready -> processing
-- @transition ready -> dead
-- @transition ready -> expired
-- @transition ready -> delayed
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key offers ZSET worker -> since when it waits, us
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @arg call the number of the call that it would make next
-- @arg lease ms
-- @arg wait the offer stands for so many ms
-- @arg types as in reserve
-- @arg keep as in reserve
-- @returns OK the next job that comes alone is handed to it
-- @returns OFF none is, for a while: workers that make no offers took the markers
-- @returns BEHIND that call was made: it has its answer
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(log workers)
--
-- The job comes with the marker: call, newline, id, a zero byte, state, newline, record.
-- The call itself, under its number, takes the offer back, and answers what was
-- handed over. Whoever has popped a marker that brought it a job owes no call: that is made up
-- for here.
--- @include reserve
--- @include hand
--- @include engine
--- @include wake
--- @include touch
--- @include offers_off

-- The one job that waits, whose marker nobody has taken, is handed over here: it came before
-- the offer did. Of more than one, and of long ones, the marker tells: then a call of reserve
-- gets as many as the worker wants. Answers whether it was.
--- @rare offer_reserve
local function offer_reserve(k, r, now, later)
  local reply = {}
  local c = reserve_plan(k, r, now)
  redis.call('LPOP', k.wake)
  r.mark = ' handed'
  reserve_apply(k, r, c, now, later, reply)
  if #reply > 0 then
    offers_tell(k, r, reply[1], reply[2], reply[3])
  end
  return #reply > 0
end

-- Decide.
local now, later, us = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused', 'long', 'generation')
k.paused, k.wakes_later = q[2], true
local word = engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
if word then
  return {word}
end
local saved = redis.call('HGET', claims, worker)
local last, list = string.match(saved or '', '^(%d+) %d+ %d+[^\n]*\n(.*)$')
touch('ZCARD', offers)
local marker = redis.call('LINDEX', wake, 0)
if last and tonumber(last) >= tonumber(call) then
  return {'BEHIND'}
end
local off = offers_are_off(k, now)

-- Apply.
if not off and not q[2] and not q[3] and marker == '1' and hand_one(k) then
  local r = {worker = worker, call = call, free = 1, ahead = 0, lease = tonumber(lease), bytes = 0,
             types = types, keep = keep, generation = q[4], knows = {}}
  if offer_reserve(k, r, now, later) then
    return {'OK'}
  end
end
wake_worker(k, k.paused) -- first: it reads more keys, and writes the one alone
if not off then
  redis.call('HSET', claims, worker, (last or '0') .. ' ' .. digits(now) .. ' ' .. lease .. ' offers ' .. call
    .. ' ' .. digits(now + wait) .. ' ' .. keep .. '|' .. types .. '\n' .. (list or ''))
  redis.call('ZADD', offers, digits(us), worker)
end
return {off and 'OFF' or 'OK'}
