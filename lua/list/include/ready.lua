--- Ways into the ready list. An id stands there at most once: one that was
-- cancelled while it waited still has its place (and a tombstone), takes that
-- place again and is not pushed.

-- ready_touch(k): reads what the others may write.
local function ready_touch(k)
  redis.call('LLEN', k.ready)
  redis.call('HLEN', k.tombs)
end

-- ready_any(k): does a job wait for a worker?
local function ready_any(k)
  return redis.call('LLEN', k.ready) > redis.call('HLEN', k.tombs)
end

-- ready_places(k, ids): the ids that have no place yet, in their order.
-- Clears the tombstones of the others. k.has_tombs is false where it is known that there
-- are none.
local function ready_places(k, ids)
  if k.has_tombs == false or redis.call('HLEN', k.tombs) == 0 then
    return ids
  end
  local marks, push, again = redis.call('HMGET', k.tombs, unpack(ids)), {}, {}
  for i = 1, #ids do
    local list = marks[i] and again or push
    list[#list + 1] = ids[i]
  end
  if #again > 0 then
    redis.call('HDEL', k.tombs, unpack(again))
  end
  return push
end

-- To the back: taken after all that waits now; ids in the order to be taken.
local function ready_back(k, ids)
  local push = ready_places(k, ids)
  if #push > 0 then
    redis.call('LPUSH', k.ready, unpack(push))
  end
end

-- To the front: taken next; ids in the order to be taken, so the last is pushed first.
local function ready_front(k, ids)
  local push, back = ready_places(k, ids), {}
  for i = #push, 1, -1 do
    back[#back + 1] = push[i]
  end
  if #back > 0 then
    redis.call('RPUSH', k.ready, unpack(back))
  end
end
