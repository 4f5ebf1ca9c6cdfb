--- reclaim: takes back the jobs whose lease ran out.
--
-- @flags allow-oom
-- @transition processing -> ready
-- @transition processing -> delayed
-- @transition processing -> dead
-- @transition processing -> cancelled
-- @key list:processing ZSET id -> end of its lease, ms
-- @key list:ready LIST ids that wait, taken from the right
-- @key list:tombs HASH ids cancelled while they stand in ready
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key claims HASH worker -> its last reserve
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
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
--- @include leases
--- @include opens
--- @include wake

-- Decide.
local now, later = clock(now_arg)
local word = opens(k)
if word then
  return {word}
end
reclaim_touch(k)
leases_touch(k)
local jump = gap ~= '' and math.abs((now - last) - gap) > 1000
if quiet == '1' or gap == '' or tonumber(gap) > lease / 2 or jump then
  redis.call('SET', heartbeat_reclaim, digits(now), 'EX', 30)
  leases_pull_back(k, now, lease, lease_max)
  return {'QUIET', digits(now), '-1', '0', '0', '0', '0'}
end
local lost, more = leases_over(k, now, lease, limit)

-- Apply.
leases_pull_back(k, now, lease, lease_max)
local front, wait, died, cancelled = reclaim_jobs(k, lost, now, later)
redis.call('SET', heartbeat_reclaim, digits(now), 'EX', 30)
wake_worker(k, k.paused)
return {more and 'MORE' or 'OK', digits(now), digits(leases_left(k, now)), digits(front),
        digits(wait), digits(died), digits(cancelled)}
