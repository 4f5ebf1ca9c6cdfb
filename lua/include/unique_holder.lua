--- Who holds a unique key.
--- @include record
--- @include place

-- Does this job still hold its key? Not if it ended without letting it go, which can be
-- when its record was deleted by hand: the record named the key.
local function unique_holds(k, holder)
  if is_processing(k, holder) then
    return true
  end
  local record = record_of(k, holder)
  if not record then
    return false
  end
  local letter = redis.call('ZSCORE', k.dead, holder) and 'x'
    or redis.call('ZSCORE', k.kept, holder) and 'k'
  return not letter or string.find(record_unique(record), '^[^=]+=%a*' .. letter) ~= nil
end

-- unique_spec(spec): "WINDOW KEY[ MODE][ =ORDER]": ms, the encoded key ('-': none), what is
-- done when it is held: '' refuse, 'r' give the holder this record if it waits, 'l' that,
-- and take the key over if it runs (not an ordered job: it waits for another already); and
-- the encoded order key, '' for none.
local function unique_spec(spec)
  local window, key, mode, order = string.match(spec, '^(%d+) (%S+) ?(%a?) ?=?(%S*)$')
  order = order or ''
  return key or '-', tonumber(window or 0), mode == 'l' and order ~= '' and 'r' or mode or '', order
end

-- The holder of a unique key, or nil when the key may be taken; then also key, window, the
-- job that runs from which it is taken, whether the key stood in the name of any job, and the
-- order key.
local function unique_holder(k, spec, id, now)
  local key, window, mode, order = unique_spec(spec)
  if key == '-' then
    return nil, key, 0, nil, false, order
  end
  local holder, before = redis.call('HGET', k.unique, key), nil
  if holder and holder ~= id and unique_holds(k, holder) then
    if mode ~= 'l' or not is_processing(k, holder) then
      return holder
    end
    before = holder
  end
  local over = redis.call('ZSCORE', k.windows, key)
  if over and tonumber(over) > now then
    return '-'
  end
  return nil, key, window, before, holder ~= false, order
end
