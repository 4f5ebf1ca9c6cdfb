--- stand_of(k, id, test): the place of a job, and its state ('': none; for one that runs it
-- is made when none is stored). nil: there is no such job. One that runs does so also after
-- its entry was deleted by hand: its worker will answer.
--- @include delivery
--- @include aside

local function stand_of(k, id, test)
  local entry = entry_of(k, id)
  local at = entry or redis.call('HGET', k.ids, id) or id
  local p = is_entry(at) and pending_range(k, test, at, at, 1)[1]
  if p and p[2] ~= FRONT then
    return 'processing', delivery_state(k, id, p)
  end
  local text = redis.call('HGET', k.state, id) or ''
  if entry then
    return 'ready', text
  end
  return aside_of(k, id), text
end
