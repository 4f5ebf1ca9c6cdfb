--- unique_free(unique, key, id): lets a unique key go if this job still holds it.
-- Compare and delete, so a job that lost its key cannot free another's.
local function unique_free(unique, key, id)
  if key ~= '-' and redis.call('HGET', unique, key) == id then
    redis.call('HDEL', unique, key)
  end
end

-- The same for jobs that end where no answer names their key: the state has it.
local function unique_free_all(unique, state, ids)
  if redis.call('HLEN', unique) == 0 then
    return
  end
  for i, text in ipairs(redis.call('HMGET', state, unpack(ids))) do
    local key = string.match(text or '', '^%d+ %S+ %S+ (%S+) ')
    if key then
      unique_free(unique, key, ids[i])
    end
  end
end
