--- ended(k, id, word, result): tells those who wait for the end of a job.
-- They stand in `waiters`: id -> "tag until tag until ...". A tag is the channel of
-- one waiting connection, "/" and the number of its wait. The message is the tag, the
-- id and the word on a line each, then the result. Who misses it, because its connection
-- broke, asks again: the message is for speed, and for results that are not kept.
-- k has `waiters`; k.waited, that somebody waits for anything, comes from ended_touch().

-- ended_touch(k[, only]): reads `waiters` before the first write of the script; of one job,
-- if it is the only one that can end. Whose user may not publish tells nobody: the error would
-- end the script in the midst of its writes.
local function ended_touch(k, only)
  k.tags = only and {[only] = redis.call('HGET', k.waiters, only)}
  k.waited = (only and k.tags[only] or not only and redis.call('HLEN', k.waiters) > 0)
    and redis.acl_check_cmd('PUBLISH', 'weir:ended:*', '')
end

local function ended(k, id, word, result)
  local tags = k.waited and (k.tags and k.tags[id] or redis.call('HGET', k.waiters, id))
  if not tags then
    return
  end
  for tag in string.gmatch(tags, '(%S+) %d+') do
    redis.call('PUBLISH', string.match(tag, '^[^/]+'),
               tag .. '\n' .. id .. '\n' .. word .. '\n' .. result)
  end
  redis.call('HDEL', k.waiters, id)
end
