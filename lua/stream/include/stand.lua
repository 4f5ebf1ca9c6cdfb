--- stand_of(k, id, test): the place of a job, and its state ('': none; for one that runs it
-- is made when none is stored). nil: there is no such job.
--- @include delivery

local function stand_of(k, id, test)
  local entry = entry_of(k, id)
  local p = entry and pending_range(k, test, entry, entry, 1)[1]
  if p and p[2] ~= FRONT then
    return 'processing', delivery_state(k, id, p)
  end
  local text = redis.call('HGET', k.state, id) or ''
  if entry then
    return 'ready', text
  end
  for place, key in pairs({delayed = k.delayed, dead = k.dead, done = k.kept}) do
    if redis.call('ZSCORE', key, id) then
      return place, text
    end
  end
  return nil, text
end
