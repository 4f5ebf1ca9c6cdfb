--- stand_of(k, id): the place of a job, and its state ('': none). nil: there is no such job.
--- @include aside

local function stand_of(k, id)
  local text = redis.call('HGET', k.state, id) or ''
  return redis.call('ZSCORE', k.processing, id) and 'processing' or aside_of(k, id)
    or redis.call('HEXISTS', k.jobs, id) == 1 and 'ready' or nil, text
end
