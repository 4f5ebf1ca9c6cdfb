--- choose_dead(dead, argv, first, limit, before, skip): the named ids, or the oldest
-- dead ones up to `limit` after the first `skip` that died not after `before` ('' = any time).
-- Answers ids, the reply notes GONE for named ones that are not dead, and the position
-- of each id among the items (without items: in the slice).
--- @include clock

local function choose_dead(dead, argv, first, limit, before, skip)
  if #argv < first then
    local slice, at = redis.call('ZRANGEBYSCORE', dead, '-inf', before == '' and '+inf' or before,
                                 'LIMIT', skip, limit), {}
    for i = 1, #slice do
      at[i] = digits(i - 1)
    end
    return slice, {}, at
  end
  local ids, notes, at, seen = {}, {}, {}, {}
  for i = first, #argv do
    if redis.call('ZSCORE', dead, argv[i]) and not seen[argv[i]] then
      ids[#ids + 1] = argv[i]
      at[#at + 1] = digits(i - first)
      seen[argv[i]] = true
    else
      notes[#notes + 1] = digits(i - first)
      notes[#notes + 1] = 'GONE'
      notes[#notes + 1] = ''
    end
  end
  return ids, notes, at
end
