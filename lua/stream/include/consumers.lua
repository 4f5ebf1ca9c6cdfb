--- Names of workers that are gone leave the group. Only those with nothing pending: with a
-- name its pending entries would go, and nobody ever got them again.
--- @include group

-- consumers_idle(k, idle): of those that did nothing for so many ms. Of the server's time:
-- a test clock is not theirs.
local function consumers_idle(k, idle)
  local names = {}
  for _, flat in ipairs(group_info(k) and redis.call('XINFO', 'CONSUMERS', k.stream, GROUP) or {}) do
    local c = {}
    for i = 1, #flat, 2 do
      c[flat[i]] = flat[i + 1]
    end
    if c.name ~= FRONT and c.pending == 0 and c.idle > idle then
      names[#names + 1] = c.name
    end
  end
  return names
end

local function consumers_remove(k, names)
  for _, name in ipairs(names) do
    redis.call('XGROUP', 'DELCONSUMER', k.stream, GROUP, name)
  end
end
