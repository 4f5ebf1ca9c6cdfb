--- consumers_sweep(k, idle): names of workers that are gone leave the group. Only those with
-- nothing pending: with a name its pending entries would go, and nobody ever got them again.
--- @include group

local function consumers_sweep(k, idle)
  local gone = 0
  for _, flat in ipairs(group_info(k) and redis.call('XINFO', 'CONSUMERS', k.stream, GROUP) or {}) do
    local c = {}
    for i = 1, #flat, 2 do
      c[flat[i]] = flat[i + 1]
    end
    if c.name ~= FRONT and c.pending == 0 and c.idle > idle then
      redis.call('XGROUP', 'DELCONSUMER', k.stream, GROUP, c.name)
      gone = gone + 1
    end
  end
  return gone
end
