--- delayed_add(delayed, due, pairs): puts jobs into delayed.
-- pairs is score, id, score, id, ... The scheduler's leader sleeps until the head
-- of delayed is due; it is woken when the head becomes an earlier one.
--- @rare delayed_add
local function delayed_add(delayed, due, pairs)
  local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  local first = pairs[1]
  for i = 3, #pairs, 2 do
    if pairs[i] < first then
      first = pairs[i]
    end
  end
  redis.call('ZADD', delayed, unpack(pairs))
  if (not head or first < tonumber(head)) and redis.call('EXISTS', due) == 0 then
    redis.call('LPUSH', due, '1')
  end
end
