--- memory_is_full(): does the server hold more than its maxmemory? A script that drains the
-- queue runs then all the same, and must not fill it further. Counted as the server does:
-- what waits to go to its replicas and to its file is not. Who may not ask is told no: the
-- one place where an error is not one.
local function memory_is_full()
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then
    return false
  end
  local used = tonumber(string.match(info, 'used_memory:(%d+)') or 0)
  local most = tonumber(string.match(info, 'maxmemory:(%d+)') or 0)
  local apart = tonumber(string.match(info, 'mem_not_counted_for_evict:(%d+)') or 0)
  return most > 0 and used - apart > most
end
