--- A job that took over the key of one that runs (keep-last) waits in `delayed` for that
-- one's end: `unique` has "=KEY" -> the id that it waits for. "=" is in no encoded key.
--- @include unique
--- @include ledger
--- @include ready
--- @include wake
--- @include touch
--- @include order

-- For a job that was forgotten by hand nobody waits longer than a day.
local PARK_MS = 86400000

-- unique_next_touch(k, word, id): reads what unique_next() may write.
--- @rare unique_next_touch
local function unique_next_touch(k, word, id)
  if word == '-' then
    return
  end
  if order_key(word) then
    order_touch(k)
    touch('HLEN', k.unique) -- of the one that is let in
  end
  local key = string.match(word, '^[^=]+')
  if key ~= '-' and redis.call('HGET', k.unique, '=' .. key) == id then
    ready_touch(k)
    touch('LLEN', k.wake)
    touch('HLEN', k.jobs, k.state, k.order)
    touch('ZCARD', k.delayed)
  end
end

--- @rare unique_let_in
local function unique_let_in(k, key)
  redis.call('HDEL', k.unique, '=' .. key)
  local next_id = redis.call('HGET', k.unique, key)
  if next_id and redis.call('HEXISTS', k.state, next_id) == 0
     and redis.call('ZREM', k.delayed, next_id) == 1 then
    ready_back(k, {next_id})
    k.let_in = true
    ledger_add(k.stats, 'promoted', 1)
    if not k.wakes_later then
      wake_worker(k, k.paused)
    end
  end
end

-- unique_pass(k, word, id): the one that took the key over from this job is ready.
local function unique_pass(k, word, id)
  local key = string.match(word, '^[^=]+')
  if key ~= '-' and redis.call('HGET', k.unique, '=' .. key) == id then
    unique_let_in(k, key)
  end
end

-- unique_next(k, word, id): this job has ended: those that wait for that are ready.
local function unique_next(k, word, id)
  if word == '-' then
    return
  end
  if order_key(word) then
    order_leave(k, id)
  end
  unique_pass(k, word, id)
end
