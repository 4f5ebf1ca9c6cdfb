--- remove_jobs(k, ids): takes away all that is stored under these ids, but not
-- their places in ready, processing, delayed, dead or kept: that is the caller's.
-- k has the names of the keys: jobs state results errors log stats.
--- @include log

-- remove_touch(k): reads what most jobs have nothing in. What is empty needs no
-- removal: that saves three commands a script. k.bare: nothing is stored outside of the stream;
-- k.unnamed: nor has any job there another id than its entry's.
local function remove_touch(k)
  k.extras, k.silent = {}, true
  if ENGINE == 'stream' then -- one look: ids counts once, each of the others twice
    local n = redis.call('EXISTS', k.ids, k.jobs, k.jobs, k.state, k.state, k.errors, k.errors, k.results,
                         k.results, k.log, k.log)
    k.bare, k.unnamed = n < 2, n == 0
  end
  if k.bare then
    return
  end
  redis.call('HLEN', k.jobs)
  if redis.call('EXISTS', k.errors, k.results, k.log) == 0 then
    return
  end
  for _, key in ipairs({k.errors, k.results}) do
    if redis.call('HLEN', key) > 0 then
      k.extras[#k.extras + 1] = key
    end
  end
  k.silent = redis.call('HLEN', k.log) == 0
end

local function remove_jobs(k, ids)
  if #ids == 0 or k.bare then
    return
  end
  for _, key in ipairs({k.jobs, k.state}) do -- of a stream they are empty often
    if ENGINE == 'list' or redis.call('HLEN', key) > 0 then
      redis.call('HDEL', key, unpack(ids))
    end
  end
  for _, key in ipairs(k.extras or {k.errors, k.results}) do
    redis.call('HDEL', key, unpack(ids))
  end
  if not k.silent then
    log_remove(k.log, k.stats, ids)
  end
end
