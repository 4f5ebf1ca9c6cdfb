--- place_of(k, id): where a job with a record is.
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
