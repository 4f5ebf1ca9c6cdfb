--- What admit() asks and writes where engines differ.
--- @include ready
--- @include place
--- @include places
--- @include due
--- @include touch

-- An id that the client made up is as good as any.
local function arrivals_ids()
end

-- admit_look(k, has_due): reads what admit_apply() has to know, and may write. That a queue
-- has no job and no marker, and that nobody waits for one, is seen at once: k.empty.
local function admit_look(k, has_due)
  k.marked, k.has_tombs = false, false
  k.empty = redis.call('EXISTS', k.jobs, k.ready, k.tombs, k.processing, k.delayed, k.dead, k.kept,
                       k.wake, k.waiters or k.wake, k.state or k.wake) == 0
  if not k.empty then
    k.ready_n = redis.call('LLEN', k.ready)
    k.marked = redis.call('LLEN', k.wake) > 0
    k.has_tombs = redis.call('HLEN', k.tombs) > 0
  end
  if has_due then
    touch('LLEN', k.due)
    touch('ZCARD', k.delayed)
  end
end

-- records_known(k, ids): the records stored under these ids, each false if there is none.
local function records_known(k, ids)
  return k.empty and {} or redis.call('HMGET', k.jobs, unpack(ids))
end

-- arrivals_store(k, d): the records of d and their places. Answers more notes, or nil.
local function arrivals_store(k, d)
  redis.call('HSET', k.jobs, unpack(d.records))
  if #d.ready > 0 then
    ready_back(k, d.ready)
  end
  if #d.delayed > 0 then
    delayed_add(k.delayed, k.due, d.delayed)
  end
  return nil
end
