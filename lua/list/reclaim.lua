--- reclaim: takes back the jobs whose lease ran out.
--
-- @flags allow-oom
-- @transition processing -> ready
-- @transition processing -> delayed
-- @transition processing -> dead
-- @transition processing -> cancelled
-- @key processing ZSET id -> end of its lease, ms
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key unique HASH unique key -> id that holds it
-- @key waiters HASH id -> who waits for its end
-- @key wake LIST the marker that wakes one worker
-- @key due LIST the marker that wakes the scheduler
-- @key config HASH engine, limits, paused
-- @key heartbeat_reclaim STRING reclaim is alive
-- @arg now the test clock, ms; empty: the server's
-- @arg lease the caller's own, ms
-- @arg gap ms since its last good call, on its monotonic clock; empty: first call
-- @arg last the server's time at that call, ms; empty: first call
-- @arg quiet 1: its quiet period is not over
-- @arg lease_max a lease that ends later than this from now is pulled back, ms
-- @arg limit at most so many
-- @returns OK nothing more has run out
-- @returns MORE call again at once
-- @returns QUIET nothing was taken back: time cannot be trusted for one lease
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit * log processing)
--
-- Reply: word, the server's time, ms until the next lease ends (-1: none), then how
-- many went to ready, delayed, dead, cancelled.
--
-- A reclaimer that was away, or a server whose clock stepped, takes nothing back for
-- one lease: live workers renew in that time, so an outage charges nobody.
--- @include reclaim
--- @include claims
--- @include engine
--- @include wake
--- @include touch

local k = {processing = processing, ready = ready, tombs = tombs, delayed = delayed, dead = dead, jobs = jobs, state = state, results = results, errors = errors, log = log, stats = stats, claims = claims, unique = unique, wake = wake, due = due, waiters = waiters, }

-- A step of the clock left leases far in the future: their workers' own length is
-- given to them from now on.
local function pull_back(now)
  local far = redis.call('ZREVRANGEBYSCORE', processing, '+inf', '(' .. digits(now + lease_max),
                         'LIMIT', 0, 100)
  for _, id in ipairs(far) do
    local worker = string.match(redis.call('HGET', state, id) or '', '^%d+ (%S+) ') or '-'
    local _, _, own = claims_of(claims, worker)
    redis.call('ZADD', processing, 'XX', now + (own or lease), id)
  end
end

-- Decide.
local now, later = clock(now_arg)
local q = redis.call('HMGET', config, 'engine', 'paused')
k.paused = q[2]
local word = engine_word(q[1], stats, jobs, processing)
if word then
  return {word}
end
ended_touch(k)
touch('HLEN', tombs, jobs, state, results, errors, log, stats, claims, unique)
touch('ZCARD', processing, delayed, dead)
touch('LLEN', ready, wake, due)
local jump = gap ~= '' and math.abs((now - last) - gap) > 1000
if quiet == '1' or gap == '' or tonumber(gap) > lease / 2 or jump then
  redis.call('SET', heartbeat_reclaim, digits(now), 'EX', 30)
  pull_back(now)
  return {'QUIET', digits(now), '-1', '0', '0', '0', '0'}
end
local ids = redis.call('ZRANGEBYSCORE', processing, '-inf', now, 'LIMIT', 0, limit)
local lost, known = {}, {}
if #ids > 0 then
  local texts = redis.call('HMGET', state, unpack(ids))
  for i = 1, #ids do
    local token, worker = string.match(texts[i] or '', '^(%d+) (%S+) ')
    local ahead = false
    if worker then
      known[worker] = known[worker] or claims_of(claims, worker)
      ahead = known[worker][ids[i] .. '\t' .. token]
    end
    lost[i] = {id = ids[i], text = texts[i], charged = not ahead, token = tonumber(token or 0)}
  end
  table.sort(lost, function(a, b) return a.token < b.token end)
end

-- Apply.
pull_back(now)
local front, wait, died, cancelled = reclaim_jobs(k, lost, now, later)
redis.call('SET', heartbeat_reclaim, digits(now), 'EX', 30)
wake_worker(wake, ready, tombs, q[2])
local head = redis.call('ZRANGE', processing, 0, 0, 'WITHSCORES')[2]
local left = head and math.max(0, tonumber(head) - now) or -1
return {#ids == tonumber(limit) and 'MORE' or 'OK', digits(now), digits(left), digits(front),
        digits(wait), digits(died), digits(cancelled)}
