--- wake_worker(wake, ready, tombs, paused): keeps the rule
--   ready > 0 and not paused => a marker stands, or one who took it owes a call.
-- Every script that may leave ready > 0 ends with it.
local function wake_worker(wake, ready, tombs, paused)
  if paused then
    return
  end
  if redis.call('EXISTS', wake) == 0
     and redis.call('LLEN', ready) > redis.call('HLEN', tombs) then
    redis.call('LPUSH', wake, '1')
  end
end
