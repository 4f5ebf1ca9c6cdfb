--- The deliveries of the list engine: an id in `processing`, whose score is the end of its
-- lease; its state names the token and the worker.
--- @include state
--- @include ready

-- held_look(k, ids, tokens, worker, plain): the states of these jobs, and of each why the
-- delivery does not own it: nil if it does. With `plain`: false if it does and there is
-- nothing more to know: not cancelled, no unique key, keeps no result.
local function held_look(k, ids, tokens, worker, plain)
  local words, mine = {}, ' ' .. worker .. ' - - 0 '
  local texts = redis.call('HMGET', k.state, unpack(ids))
  local scores = redis.call('ZMSCORE', k.processing, unpack(ids))
  for i = 1, #ids do
    if plain and texts[i] and scores[i]
       and string.find(texts[i], tokens[i] .. mine, 1, true) == 1 then
      words[i] = false
    else
      words[i] = held_word(texts[i], scores[i], tokens[i], worker)
    end
  end
  return texts, words
end

-- held_renew(k, ids, texts, now, lease): those of the ids that are held go on so long.
local function held_renew(k, ids, _, now, lease)
  local scores, lease_end = {}, digits(now + lease)
  for i, id in ipairs(ids) do
    scores[2 * i - 1], scores[2 * i] = lease_end, id
  end
  redis.call('ZADD', k.processing, 'XX', unpack(scores))
end

-- held_gone(k, id): is the body of a held job gone?
local function held_gone(k, id)
  return redis.call('HEXISTS', k.jobs, id) == 0
end

-- held_touch(k): reads what the next three may write.
local function held_touch(k)
  ready_touch(k)
  redis.call('ZCARD', k.processing)
end

-- held_finish(k, ids): these jobs are over.
local function held_finish(k, ids)
  if #ids > 0 then
    redis.call('ZREM', k.processing, unpack(ids))
  end
end

-- held_store(k, ids): these are held no more and go elsewhere; their records are in `jobs`.
local function held_store(k, ids)
  held_finish(k, ids)
end

-- held_front(k, ids): these are taken next, in this order. Answers how many.
local function held_front(k, ids)
  if #ids > 0 then
    held_finish(k, ids)
    ready_front(k, ids)
  end
  return #ids
end

-- held_sort(list): items with a token each, into the order in which they were handed out:
-- tokens rise.
local function held_sort(list)
  table.sort(list, function(a, b) return tonumber(a.token) < tonumber(b.token) end)
end
