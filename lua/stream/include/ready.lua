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
  redis.call('XLEN', k.stream)
  redis.call('HLEN', k.ids)
  redis.call('HLEN', k.jobs)
end

-- ready_any(k): does a job wait for a worker? One that was deleted by hand while it was
-- held hides one that waits, until it is reclaimed.
local function ready_any(k)
  local group, len = group_again(k), redis.call('XLEN', k.stream)
  return len > (group and group.pending or 0) or group and group.pending > 0
    and #redis.call('XPENDING', k.stream, GROUP, '-', '+', 1, FRONT) > 0
end

-- ready_add(k, jobs): adds {id=, record=} in this order; id nil: that of the entry. Their
-- entries follow each other, so that the ids of many are told in one word. Answers the
-- entries.
local function ready_add(k, jobs)
  local entries, places, ms, seq = {}, {}, nil, nil
  group_make(k)
  k.entries = nil
  for i, job in ipairs(jobs) do
    local at = ms and ms .. '-' .. digits(seq + i) or '*'
    if job.id then
      entries[i] = redis.call('XADD', k.stream, at, 'j', job.record, 'i', job.id)
      places[#places + 1] = job.id
      places[#places + 1] = entries[i]
    else
      entries[i] = redis.call('XADD', k.stream, at, 'j', job.record)
    end
    if not ms then
      ms, seq = string.match(entries[1], '^(%d+)%-(%d+)$')
      seq = seq - 1
    end
  end
  if #places > 0 then
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
  local jobs = {}
  for i, id in ipairs(ids) do
    jobs[i] = {id = id, record = records[i] or STUB}
  end
  ready_add(k, jobs)
end
