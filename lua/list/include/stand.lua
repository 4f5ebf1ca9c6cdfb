--- stand_of(k, id): the place of a job, and its state ('': none). nil: there is no such job.

local function stand_of(k, id)
  local text = redis.call('HGET', k.state, id) or ''
  for place, key in pairs({processing = k.processing, delayed = k.delayed, dead = k.dead,
                           done = k.kept}) do
    if redis.call('ZSCORE', key, id) then
      return place, text
    end
  end
  return redis.call('HEXISTS', k.jobs, id) == 1 and 'ready' or nil, text
end
