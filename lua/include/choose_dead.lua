--- choose_dead(dead, argv, first, limit, before): the named ids, or the oldest
-- dead ones up to `limit` that died not after `before` ('' = any time).
-- Answers ids and the reply notes GONE for named ones that are not dead.
--- @include clock

local function choose_dead(dead, argv, first, limit, before)
  if #argv < first then
    return redis.call('ZRANGEBYSCORE', dead, '-inf', before == '' and '+inf' or before,
                      'LIMIT', 0, limit), {}
  end
  local ids, notes, seen = {}, {}, {}
  for i = first, #argv do
    if redis.call('ZSCORE', dead, argv[i]) and not seen[argv[i]] then
      ids[#ids + 1] = argv[i]
      seen[argv[i]] = true
    else
      notes[#notes + 1] = digits(i - first)
      notes[#notes + 1] = 'GONE'
      notes[#notes + 1] = ''
    end
  end
  return ids, notes
end
