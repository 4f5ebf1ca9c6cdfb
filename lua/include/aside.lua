--- aside_of(k, id): in which of the sets beside the line does it stand? Its word, or nil.
--- @rare aside_of
local function aside_of(k, id)
  return redis.call('ZSCORE', k.delayed, id) and 'delayed'
    or redis.call('ZSCORE', k.dead, id) and 'dead'
    or redis.call('ZSCORE', k.kept, id) and 'done' or nil
end
