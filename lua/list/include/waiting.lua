--- Jobs that wait, and leave the line or change there. A place in the middle of a list
-- cannot be given back: the id stays, under a tombstone, and is skipped.
--- @include ready
--- @include tombs

-- waiting_touch(k): reads what the others may write.
local function waiting_touch(k)
  ready_touch(k)
end

-- waiting_left(k): no more than so many jobs wait.
local function waiting_left(k)
  return redis.call('LLEN', k.ready) - redis.call('HLEN', k.tombs)
end

-- waiting_finish(k, ids): these are over; what is stored of them is the caller's to remove.
local function waiting_finish(k, ids)
  local marks = {}
  for i, id in ipairs(ids) do
    marks[2 * i - 1], marks[2 * i] = id, '1'
  end
  redis.call('HSET', k.tombs, unpack(marks))
  tombs_pop(k)
end

-- waiting_store(k, id): it goes elsewhere; its record is in `jobs` after that.
local function waiting_store(k, id)
  waiting_finish(k, {id})
end

-- waiting_rewrite(k, id, record): the same job with another record.
local function waiting_rewrite(k, id, record)
  redis.call('HSET', k.jobs, id, record)
end

-- waiting_next(k, id): it joins the line, before all others.
local function waiting_next(k, id)
  ready_front(k, {id})
end

-- waiting_add(k, id, record): a new job, at the back.
local function waiting_add(k, id, record)
  redis.call('HSET', k.jobs, id, record)
  ready_back(k, {id})
end
