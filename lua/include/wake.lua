--- wake_worker(k, paused): keeps the rule
--   ready > 0 and not paused => a marker stands, or one who took it owes a call; or it brought
--   a job to who offered, and the next offer or promote puts one for what came meanwhile.
-- Every script that may leave ready > 0 ends with it.
--- @include ready
local function wake_worker(k, paused)
  if paused then
    return
  end
  if redis.call('EXISTS', k.wake) == 0 and ready_any(k) then
    redis.call('LPUSH', k.wake, '1')
  end
end
