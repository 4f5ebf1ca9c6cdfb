--- unique_free(unique, key, id): lets a unique key go if this job still holds it.
-- Compare and delete, so a job that lost its key cannot free another's.
local function unique_free(unique, key, id)
  if key ~= '-' and redis.call('HGET', unique, key) == id then
    redis.call('HDEL', unique, key)
  end
end
