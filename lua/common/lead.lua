--- lead: one scheduler per queue is the leader; it renews, the others watch.
--
-- @flags allow-oom
-- @key lock STRING the leader and how often it renewed
-- @arg now the test clock, ms; empty: the server's
-- @arg me the caller's id
-- @arg seen the value to take over from; empty: only renew, or take a free lock
-- @arg leave 1: give the lock up
-- @returns LEADER the caller leads; second word: the server's time
-- @returns FOLLOWER another one does; second word: the server's time, third: the lock's value
-- @returns LEFT the caller leads no more
-- @cost O(1)
--
-- Judged by the renewal count, not by a clock: a follower that sees the same value
-- for three periods of its own passes it as `seen` and takes over, if nothing moved.
-- The time tells a follower of outages and steps of the clock, so that it can reclaim
-- at once when it takes over, if there were none.
--- @include clock

local now = digits(clock(now_arg))
local value = redis.call('GET', lock)
local holder, count = string.match(value or '', '^(%S+) (%d+)$')
if leave == '1' then
  if holder == me then
    redis.call('DEL', lock)
  end
  return {'LEFT'}
end
if value and holder ~= me and value ~= seen then
  return {'FOLLOWER', now, value}
end
redis.call('SET', lock, me .. ' ' .. string.format('%.0f', (holder == me and count or 0) + 1))
return {'LEADER', now}
