--- Jobs of one order key run one after the other, as they came. `order` has a line of each
-- key: KEY -> the last id, "=ID" -> key, the id before it, the id behind it (TAB between;
-- empty: none). "=" is in no encoded key. Only the first of a line may be anywhere; the
-- others stand in `delayed`, parked: with the score PARKED, or PARKED + their own due time
-- if they have one. Every end of a job lets in the one behind it.
--- @include parked
--- @include ready
--- @include due
--- @include wake
--- @include ledger
--- @include touch

--- @rare order_touch
local function order_touch(k)
  ready_touch(k)
  touch('HLEN', k.order, k.jobs, k.stats)
  touch('ZCARD', k.delayed)
  touch('LLEN', k.wake, k.due)
end

-- The first of a line now: it is ready, or waits for its own time.
--- @rare order_let_in
local function order_let_in(k, id)
  local score = tonumber(redis.call('ZSCORE', k.delayed, id) or 0)
  if k.stream and score >= PARKED and redis.call('HEXISTS', k.jobs, id) == 0 then
    delayed_add(k.delayed, k.due, {1, id}) -- promote will find that its body is lost
  elseif score > PARKED then
    delayed_add(k.delayed, k.due, {score - PARKED, id})
  elseif score == PARKED then
    redis.call('ZREM', k.delayed, id)
    ready_back(k, {id})
    k.let_in = true
    ledger_add(k.stats, 'promoted', 1)
    if not k.wakes_later then
      wake_worker(k, k.paused)
    end
  end
end

-- order_leave(k, id): out of its line, wherever it stands there. False: it is in none.
--- @rare order_leave
local function order_leave(k, id)
  local key, before, behind = order_link(k, id)
  if not key then
    return false
  end
  redis.call('HDEL', k.order, '=' .. id)
  if behind ~= '' then
    local _, _, next_behind = order_link(k, behind)
    redis.call('HSET', k.order, '=' .. behind, table.concat({key, before, next_behind or ''}, '\t'))
  end
  if before ~= '' then
    local _, first = order_link(k, before)
    redis.call('HSET', k.order, '=' .. before, table.concat({key, first or '', behind}, '\t'))
    if behind == '' then
      redis.call('HSET', k.order, key, before)
    end
  elseif behind == '' then
    redis.call('HDEL', k.order, key)
  else
    order_let_in(k, behind)
  end
  return true
end

-- order_join(k, list): to the ends of their lines: key, id, key, id, ... They are where they
-- belong already. Ids whose records were deleted by hand may still stand in lines: they
-- leave them, and who found a line not empty for that alone is let in.
--- @rare order_join
local function order_join(k, list)
  local ends, texts, fields, first, left = {}, {}, {}, {}, false
  for i = 2, #list, 2 do
    left = order_leave(k, list[i]) or left
  end
  for i = 1, #list, 2 do
    local key, id = list[i], list[i + 1]
    local last = ends[key] or redis.call('HGET', k.order, key)
    if last then
      local link = texts['=' .. last]
      local _, before = order_link(k, last)
      before = link and string.match(link, '^[^\t]+\t([^\t]*)') or before or ''
      texts['=' .. last] = table.concat({key, before, id}, '\t')
    end
    texts['=' .. id] = table.concat({key, last or '', ''}, '\t')
    ends[key] = id
    first[#first + 1] = left and not last and id or nil
  end
  for key, id in pairs(ends) do
    fields[#fields + 1], fields[#fields + 2] = key, id
  end
  for field, text in pairs(texts) do
    fields[#fields + 1], fields[#fields + 2] = field, text
  end
  redis.call('HSET', k.order, unpack(fields))
  for _, id in ipairs(first) do
    order_let_in(k, id)
  end
end

-- order_split(k, list, ids): of these ids, all that can go now, and as score, id, ... those
-- that wait for another. list: as order_join() gets it next.
--- @rare order_split
local function order_split(k, list, ids)
  local go, wait, lines, keys = {}, {}, {}, {}
  for i = 1, #list, 2 do
    keys[list[i + 1]] = list[i]
  end
  for _, id in ipairs(ids) do
    local key = keys[id]
    if key and (lines[key] or redis.call('HEXISTS', k.order, key) == 1) then
      wait[#wait + 1], wait[#wait + 2] = order_parked(), id
    else
      go[#go + 1] = id
      if key then
        lines[key] = true
      end
    end
  end
  return go, wait
end
