--- Jobs that wait, and leave the line or change there. Their entries go at once, also those
-- that were given back to the front.
--- @include entry
--- @include group
--- @include ready

-- waiting_touch(k): reads what the others may write.
local function waiting_touch(k)
  ready_touch(k)
  redis.call('HLEN', k.ids)
end

-- waiting_left(k): no more than so many jobs wait: an entry is there or not, no doubt is left.
local function waiting_left()
  return math.huge
end

-- waiting_finish(k, ids): these are over; what is stored of them is the caller's to remove.
local function waiting_finish(k, ids)
  local entries = {}
  for i, id in ipairs(ids) do
    entries[i] = entry_of(k, id)
    k.entries[id] = nil
  end
  redis.call('XACK', k.stream, GROUP, unpack(entries))
  redis.call('XDEL', k.stream, unpack(entries))
  redis.call('HDEL', k.ids, unpack(ids))
end

-- waiting_store(k, id): it goes elsewhere; its record is in `jobs` after that.
local function waiting_store(k, id)
  local _, record = entry_of(k, id)
  redis.call('HSET', k.jobs, id, record)
  waiting_finish(k, {id})
end

-- waiting_rewrite(k, id, record): the same job with another record. An entry never changes:
-- the job gets a new one, and goes to the back.
local function waiting_rewrite(k, id, record)
  waiting_finish(k, {id})
  ready_back(k, {id}, {record})
end

-- waiting_next(k, id): it joins the line: at the back, where a stream grows.
local function waiting_next(k, id)
  ready_back(k, {id})
end

-- waiting_add(k, id, record): a new job, at the back.
local function waiting_add(k, id, record)
  ready_back(k, {id}, {record})
end
