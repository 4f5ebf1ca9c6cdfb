--- remove_jobs(k, ids): takes away all that is stored under these ids, but not
-- their places in ready, processing, delayed, dead or kept: that is the caller's.
-- k has the names of the keys: jobs state results errors log.

-- remove_touch(k): reads what most jobs have nothing in. What is empty needs no
-- removal: on a busy queue that saves three commands a script.
local function remove_touch(k)
  k.extras = {}
  for _, key in ipairs({k.errors, k.results, k.log}) do
    if redis.call('HLEN', key) > 0 then
      k.extras[#k.extras + 1] = key
    end
  end
end

local function remove_jobs(k, ids)
  if #ids == 0 then
    return
  end
  redis.call('HDEL', k.jobs, unpack(ids))
  redis.call('HDEL', k.state, unpack(ids))
  for _, key in ipairs(k.extras or {k.errors, k.results, k.log}) do
    redis.call('HDEL', key, unpack(ids))
  end
end
