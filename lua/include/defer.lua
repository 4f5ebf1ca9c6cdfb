--- defer_job(k, id, at): from ready to delayed. Its place in the list stays, under a
-- tombstone: reserve skips it, and who puts the id into ready again takes it back.
--- @include due
--- @include ledger
--- @include tombs

local function defer_job(k, id, at)
  redis.call('HSET', k.tombs, id, '1')
  delayed_add(k.delayed, k.due, {at, id})
  ledger_add(k.stats, 'deferred', 1)
  tombs_pop(k)
end
