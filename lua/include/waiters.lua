--- waiters_with(k, id, tag, keep, now): who waits for the end of this job, and `tag` for so
-- many ms, as text for `waiters`; nil: too many do. One connection waits once.
--- @include clock

local WAITERS_MAX = 1000

local function waiters_with(k, id, tag, keep, now)
  local before, mine = not k.empty and redis.call('HGET', k.waiters, id), tag .. ' ' .. digits(now + keep)
  if not before then
    return mine
  end
  local list, channel = {}, string.match(tag, '^[^/]+')
  for other, untl in string.gmatch(before, '(%S+) (%d+)') do
    if tonumber(untl) > now and string.match(other, '^[^/]+') ~= channel then
      list[#list + 1] = other .. ' ' .. untl
    end
  end
  if #list >= WAITERS_MAX then
    return nil
  end
  list[#list + 1] = mine
  return table.concat(list, ' ')
end
