--- Where the stream holds a job: under its own id, or under another one that `ids` names.

-- entry_job(entry, flat): the record and the id of the job that an entry holds.
local function entry_job(entry, flat)
  local record, id = '', entry
  for i = 1, #flat, 2 do
    if flat[i] == 'j' then
      record = flat[i + 1]
    elseif flat[i] == 'i' then
      id = flat[i + 1]
    end
  end
  return record, id
end

-- Is it written as an entry's id is? Longer numbers would be an error to Redis.
local function is_entry(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return ms ~= nil and #ms < 20 and #seq < 20
end

-- entry_of(k, id): the entry of a job, and its record; nil: no entry holds it. k.entries
-- remembers it.
local function entry_of(k, id)
  k.entries = k.entries or {}
  local known = k.entries[id]
  if known == nil then
    known = false
    local at = redis.call('HGET', k.ids, id) or id
    local found = is_entry(at) and redis.call('XRANGE', k.stream, at, at)[1]
    if found and found[1] == at then
      local record, owner = entry_job(at, found[2])
      known = owner == id and {at, record}
    end
    k.entries[id] = known
  end
  if known then
    return known[1], known[2]
  end
  return nil
end
