--- Unique keys. `unique` says which job holds a key: while that job waits, is delayed or
-- runs, unless it was enqueued with other unique_states. A job's word for it is "KEY", or
-- "KEY=LETTERS": s it lets its key go when it starts, x it holds it when it is dead,
-- k when it is done and kept. Behind that may stand its order key: see record.lua.

-- unique_free(unique, word, id): lets a unique key go if this job still holds it.
-- Compare and delete, so a job that lost its key cannot free another's. One that waited for
-- the end of another (unique_next.lua) gives it back.
local function unique_free(unique, word, id)
  local key = string.match(word, '^[^=]+')
  if key ~= '-' and redis.call('HGET', unique, key) == id then
    local before = redis.call('HGET', unique, '=' .. key)
    if before then
      redis.call('HSET', unique, key, before)
      redis.call('HDEL', unique, '=' .. key)
    else
      redis.call('HDEL', unique, key)
    end
  end
end

-- The same for jobs that end where no answer names their key: the state has it.
local function unique_free_all(unique, state, ids)
  if redis.call('HLEN', unique) == 0 then
    return
  end
  for i, text in ipairs(redis.call('HMGET', state, unpack(ids))) do
    local word = string.match(text or '', '^%S+ %S+ %S+ (%S+) ')
    if word then
      unique_free(unique, word, ids[i])
    end
  end
end

-- unique_move(unique, word, id, letter): a job that ran is dead ('x'), done ('k') or waits
-- again (''). One that let its key go when it started takes it again if it is free.
local function unique_move(unique, word, id, letter)
  local key, letters = string.match(word, '^([^=]+)=(%a+)')
  if letter ~= '' and not (letters and string.find(letters, letter, 1, true)) then
    unique_free(unique, word, id)
  elseif letters and string.find(letters, 's', 1, true) then
    redis.call('HSETNX', unique, key, id)
  end
end
