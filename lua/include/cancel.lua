--- Calling jobs off: at once while they wait, by a flag while they run.
-- k has the names of the keys: ready tombs processing delayed dead kept jobs state results
-- errors log stats unique wake waiters, and paused.
--- @include state
--- @include unique_next
--- @include record
--- @include remove
--- @include ended
--- @include ledger
--- @include tombs
--- @include touch

-- cancel_plan(k, argv, first): what becomes of each id. Reads all that may be written.
-- Answers a list of {id, word, detail, state}; the words are those of cancel.
local function cancel_plan(k, argv, first)
  ended_touch(k)
  touch('HLEN', k.tombs, k.jobs, k.state, k.results, k.errors, k.log, k.stats, k.unique)
  touch('ZCARD', k.processing, k.delayed, k.dead, k.kept)
  touch('LLEN', k.wake)
  local left = redis.call('LLEN', k.ready) - redis.call('HLEN', k.tombs)
  local plan, seen = {}, {}
  for i = first, #argv do
    local id = argv[i]
    local text = redis.call('HGET', k.state, id)
    local s = text and state_read(text)
    local p = {id = id, word = 'GONE', detail = '', state = s}
    if redis.call('ZSCORE', k.processing, id) then
      p.word, p.detail = 'FLAGGED', s and s.worker or '-'
    elseif redis.call('ZSCORE', k.delayed, id) then
      p.word = 'DELAYED'
    elseif redis.call('ZSCORE', k.dead, id) then
      p.word = 'DEAD'
    elseif redis.call('ZSCORE', k.kept, id) then
      p.word = 'DONE'
    elseif redis.call('HEXISTS', k.jobs, id) == 1 and not seen[id] then
      p.word = left > 0 and 'READY' or 'BROKEN'
      left = left - 1
    end
    if seen[id] and p.word ~= 'FLAGGED' then
      p.word = 'GONE'
    end
    seen[id] = true
    plan[#plan + 1] = p
  end
  return plan
end

-- While a job waits its record names its unique key: the state may be older than that.
local function cancel_key(k, p)
  local record = redis.call('HGET', k.jobs, p.id)
  if not record then
    return p.state and p.state.unique or '-'
  end
  return record_unique(record)
end

-- cancel_apply(k, plan): does it. A waiting id keeps its place in the list and gets a
-- tombstone: no O(N) removal.
local function cancel_apply(k, plan)
  local waited, moved, keys = {READY = 0, DELAYED = 0}, {}, {}
  for _, p in ipairs(plan) do
    if p.word == 'FLAGGED' and p.state and p.state.flag ~= 'c' then
      p.state.flag = 'c'
      redis.call('HSET', k.state, p.id, state_text(p.state))
    elseif waited[p.word] then
      waited[p.word] = waited[p.word] + 1
      moved[#moved + 1] = p.id
      keys[#moved] = cancel_key(k, p)
      unique_free(k.unique, keys[#moved], p.id)
      ended(k, p.id, 'cancelled', '')
      if p.word == 'READY' then
        redis.call('HSET', k.tombs, p.id, '1')
      else
        redis.call('ZREM', k.delayed, p.id)
      end
    end
  end
  -- Who waited for one of them, and was not called off as well, may go.
  for i, id in ipairs(moved) do
    unique_free(k.unique, keys[i], id)
    unique_next(k, keys[i], id)
  end
  remove_jobs(k, moved)
  ledger_add(k.stats, 'cancelled_ready', waited.READY)
  ledger_add(k.stats, 'cancelled_delayed', waited.DELAYED)
  if waited.READY > 0 then
    tombs_pop(k)
  end
end
