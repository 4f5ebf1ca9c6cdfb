--- Where a job is, and its record.
--- @include aside

local function is_processing(k, id)
  return redis.call('ZSCORE', k.processing, id) and true or false
end

-- record_of(k, id): false if it is not stored.
local function record_of(k, id)
  return redis.call('HGET', k.jobs, id)
end

-- place_of(k, id): where a job with a record is.
local function place_of(k, id)
  return is_processing(k, id) and 'processing' or aside_of(k, id) or 'ready'
end
