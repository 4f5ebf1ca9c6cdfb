--- Records that were deleted by hand.
--- @include place

-- An entry has its record in it.
local function bodies_missing()
  return false
end

-- places_of_new(k, ids): where ids without a record stand all the same.
local function places_of_new(k, ids)
  local found, made_up = {}, k.made_up or {}
  local first = 1
  while made_up[ids[first]] do
    first = first + 1
  end
  if first > #ids or k.empty and not k.astray then -- the ids are not theirs
    return found
  end
  for _, id in ipairs(k.astray or {}) do -- who runs it may still give its answer
    found[id] = is_processing(k, id) and 'processing' or nil
  end
  -- While a queue moves, copies in `jobs` make up for records that are gone.
  if k.moving or redis.call('HLEN', k.jobs) < redis.call('ZCARD', k.delayed) + redis.call('ZCARD', k.dead)
     + redis.call('ZCARD', k.kept) then
    for _, id in ipairs(ids) do
      found[id] = found[id] or aside_of(k, id)
    end
  end
  return found
end
