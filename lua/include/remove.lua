--- remove_jobs(k, ids): takes away all that is stored under these ids, but not
-- their places in ready, processing, delayed, dead or kept: that is the caller's.
-- k has the names of the keys: jobs state results errors log.
local function remove_jobs(k, ids)
  if #ids == 0 then
    return
  end
  redis.call('HDEL', k.jobs, unpack(ids))
  redis.call('HDEL', k.state, unpack(ids))
  redis.call('HDEL', k.errors, unpack(ids))
  redis.call('HDEL', k.results, unpack(ids))
  redis.call('HDEL', k.log, unpack(ids))
end
