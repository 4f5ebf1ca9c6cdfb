--- tombs_pop(k): takes tombstones off the front of ready, so that they do not gather
-- there: who walks the front, to look or to purge, would walk over all of them again and
-- again. Called by what makes tombstones; 5,000 at most, the rest goes next time.
--- @include ledger

local TOMBS_POP_MAX = 5000

local function tombs_pop(k)
  if redis.call('HLEN', k.tombs) == redis.call('LLEN', k.ready) then
    redis.call('UNLINK', k.tombs, k.ready)
    return
  end
  local popped, n, ids, slice = 0, 0, {}, 8
  repeat
    ids = redis.call('LRANGE', k.ready, -slice, -1)
    if #ids == 0 then
      break
    end
    local marks, seen, gone = redis.call('HMGET', k.tombs, unpack(ids)), {}, {}
    n = 0
    while n < #ids and marks[#ids - n] and not seen[ids[#ids - n]] do
      gone[n + 1] = ids[#ids - n]
      seen[gone[n + 1]] = true
      n = n + 1
    end
    if n > 0 then
      redis.call('RPOP', k.ready, n)
      redis.call('HDEL', k.tombs, unpack(gone))
    end
    popped, slice = popped + n, 200
  until n == 0 or n < #ids or popped >= TOMBS_POP_MAX
  ledger_add(k.stats, 'skipped', popped)
end
