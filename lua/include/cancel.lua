--- Calling jobs off: at once while they wait, by a flag while they run.
-- k has the names of the keys of a queue's places, jobs state results errors log stats
-- unique wake due order waiters, and paused.
--- @include state
--- @include unique_next
--- @include record
--- @include remove
--- @include ended
--- @include ledger
--- @include place
--- @include stand
--- @include waiting
--- @include touch
--- @include progress_over

local CANCEL_WORDS = {delayed = 'DELAYED', dead = 'DEAD', done = 'DONE'}

-- While a job waits its record names its keys: the state may be older than that. Without
-- both nothing says whether it stands in a line: the second answer.
local function cancel_key(k, id, s)
  local record = record_of(k, id)
  if not record then
    local key = s and s.unique or '-'
    return key, key == '-'
  end
  return record_unique(record), false
end

-- cancel_plan(k, argv, first, test): what becomes of each id. Reads all that may be written.
-- Answers a list of {id, word, detail, state, key}; the words are those of cancel.
local function cancel_plan(k, argv, first, test)
  ended_touch(k)
  waiting_touch(k)
  touch('HLEN', k.jobs, k.state, k.results, k.errors, k.log, k.stats, k.unique, k.order,
        k.progress)
  touch('ZCARD', k.delayed, k.dead, k.kept)
  touch('LLEN', k.wake, k.due)
  local left = waiting_left(k)
  local plan, seen = {}, {}
  for i = first, #argv do
    local id = argv[i]
    local place, text = stand_of(k, id, test)
    local s = state_read(text)
    local p = {id = id, word = CANCEL_WORDS[place] or 'GONE', detail = '', state = s}
    if place == 'processing' then
      p.word, p.detail = 'FLAGGED', s and s.worker or '-'
    elseif place == 'ready' and not seen[id] then
      p.word = left > 0 and 'READY' or 'BROKEN'
      left = left - 1
    end
    if seen[id] and p.word ~= 'FLAGGED' then
      p.word = 'GONE'
    end
    if p.word == 'READY' or p.word == 'DELAYED' then
      p.key, p.blind = cancel_key(k, id, s)
    end
    seen[id] = true
    plan[#plan + 1] = p
  end
  return plan
end

-- cancel_apply(k, plan, now): does it.
local function cancel_apply(k, plan, now)
  local ready, delayed, moved = {}, {}, {}
  for _, p in ipairs(plan) do
    if p.word == 'FLAGGED' and p.state and p.state.flag ~= 'c' then
      p.state.flag = 'c'
      redis.call('HSET', k.state, p.id, state_text(p.state))
    elseif p.key then
      moved[#moved + 1] = p.id
      local list = p.word == 'READY' and ready or delayed
      list[#list + 1] = p.id
      progress_over(k, p.id, p.state, 'cancelled', now)
      unique_free(k.unique, p.key, p.id)
      ended(k, p.id, 'cancelled', '')
    end
  end
  if #ready > 0 then
    waiting_finish(k, ready)
  end
  if #delayed > 0 then
    redis.call('ZREM', k.delayed, unpack(delayed))
  end
  -- Who waited for one of them, and was not called off as well, may go.
  for _, p in ipairs(plan) do
    if p.key then
      if p.blind then
        order_leave(k, p.id)
      end
      unique_free(k.unique, p.key, p.id)
      unique_next(k, p.key, p.id)
    end
  end
  remove_jobs(k, moved)
  ledger_add(k.stats, 'cancelled_ready', #ready)
  ledger_add(k.stats, 'cancelled_delayed', #delayed)
end
