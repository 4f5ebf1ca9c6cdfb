--- Where a job is, and its record.

local function is_processing(k, id)
  return redis.call('ZSCORE', k.processing, id) and true or false
end

-- record_of(k, id): false if it is not stored.
local function record_of(k, id)
  return redis.call('HGET', k.jobs, id)
end

-- place_of(k, id): where a job with a record is.
local function place_of(k, id)
  if redis.call('ZSCORE', k.processing, id) then
    return 'processing'
  elseif redis.call('ZSCORE', k.delayed, id) then
    return 'delayed'
  elseif redis.call('ZSCORE', k.dead, id) then
    return 'dead'
  elseif redis.call('ZSCORE', k.kept, id) then
    return 'done'
  end
  return 'ready'
end
