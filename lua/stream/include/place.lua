--- Where a job is, and its record.
--- @include ready
--- @include aside

local function is_processing(k, id)
  local entry = redis.call('HGET', k.ids, id) or entry_of(k, id)
    or is_entry(id) and not entry_there(k, id) and id -- deleted by hand
  local row = entry and group_info(k)
    and redis.call('XPENDING', k.stream, GROUP, entry, entry, 1)[1]
  return row and row[2] ~= FRONT or false
end

-- record_of(k, id): false if it is not stored. What stands in `jobs` of a job that is in no
-- set is left over from a move between engines, or not there yet.
local function record_of(k, id)
  local _, record = entry_of(k, id)
  return record or aside_of(k, id) and redis.call('HGET', k.jobs, id) or false
end

-- place_of(k, id): where a job with a record is.
local function place_of(k, id)
  return aside_of(k, id) or is_processing(k, id) and 'processing' or 'ready'
end
