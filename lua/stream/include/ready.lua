--- Ways into the stream. An entry is `j RECORD`, and `i ID` behind that if the job has
-- another id than the entry; then the hash `ids` says which entry it is.
--- @include group
--- @include entry

-- The record of a job whose body is gone.
local STUB = '1 - 0 lost_body=1\n'

-- entry_there(k, entry): is it there? XCLAIM forgets a pending one that was deleted by hand,
-- which nobody could book then.
local function entry_there(k, entry)
  return #redis.call('XRANGE', k.stream, entry, entry) > 0
end

-- ready_touch(k): reads what the others may write.
local function ready_touch(k)
  group_info(k)
  redis.call('HLEN', k.ids)
  redis.call('HLEN', k.jobs)
end

-- ready_any(k): does a job wait for a worker? As many pending ones as there are entries are no
-- proof that none does: one that is held may have been deleted by hand. What the group says
-- of its lag, 0 when it was given the last entry, is.
local function ready_any(k)
  local group, len = group_again(k), redis.call('XLEN', k.stream)
  return len > (group and group.pending or 0) or group and group.pending > 0
    and (#redis.call('XPENDING', k.stream, GROUP, '-', '+', 1, FRONT) > 0
      or len > 0 and group.lag ~= 0
        and #redis.call('XRANGE', k.stream, '(' .. group['last-delivered-id'], '+', 'COUNT', 1) > 0)
end

-- The first entry of a call: into the stream that is there, which has its group, or reserve makes
-- it; else the group comes first. k.may_be_new: nil if nobody has looked.
local function ready_first(k, ...)
  if k.may_be_new ~= false then
    local entry = k.may_be_new and redis.call('XADD', k.stream, 'NOMKSTREAM', '*', ...)
    if entry then
      return entry
    end
    group_make(k)
  end
  return redis.call('XADD', k.stream, '*', ...)
end

-- ready_add(k, ids, records): adds them in this order; id false: that of the entry. Their
-- entries follow each other, so that the ids of many are told in one word. Answers the
-- entries.
local function ready_add(k, ids, records)
  local entries, places, n, at = {}, {}, 0, nil
  k.entries = nil
  for i = 1, #records do
    local id = ids[i]
    if not at then
      entries[1] = id and ready_first(k, 'j', records[1], 'i', id) or ready_first(k, 'j', records[1])
      at = #records > 1 and string.match(entries[1], '^%d+%-') .. '*'
    else
      entries[i] = id and redis.call('XADD', k.stream, at, 'j', records[i], 'i', id)
        or redis.call('XADD', k.stream, at, 'j', records[i])
    end
    if id then
      places[n + 1], places[n + 2] = id, entries[i]
      n = n + 2
    end
  end
  if n > 0 then
    redis.call('HSET', k.ids, unpack(places))
  end
  return entries
end

-- To the back; ids in the order to be taken. Without `records` they are in `jobs`, and
-- leave it.
local function ready_back(k, ids, records)
  if #ids == 0 then
    return
  end
  if not records then
    records = redis.call('HMGET', k.jobs, unpack(ids))
    redis.call('HDEL', k.jobs, unpack(ids))
  end
  for i = 1, #ids do
    records[i] = records[i] or STUB
  end
  ready_add(k, ids, records)
end
