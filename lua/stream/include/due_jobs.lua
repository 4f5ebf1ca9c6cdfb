--- Due jobs become ready: from `jobs` into the stream.
--- @include ready
--- @include handing
--- @include touch

local DUE_BYTES = 262144

-- due_plan(k, ids): reads what due_move() may write, and says what becomes of the ids: so
-- many that their records stay within bounds; one whose record is gone is dead.
local function due_plan(k, ids)
  local p, bytes = {ids = {}, records = {}, lost = {}}, 0
  ready_touch(k)
  ended_touch(k)
  touch('HLEN', k.stats, k.jobs, k.state, k.errors, k.unique, k.order)
  touch('ZCARD', k.dead)
  touch('LLEN', k.due)
  for _, id in ipairs(ids) do
    local record = redis.call('HGET', k.jobs, id)
    if not record or string.find(record, '^%d+ %- %d+ lost_body=1\n') then
      p.lost[#p.lost + 1] = id
    else
      bytes = bytes + #record
      p.ids[#p.ids + 1], p.records[#p.ids + 1] = id, record
    end
    if bytes > DUE_BYTES then
      break
    end
  end
  return p
end

-- due_move(k, plan, now): does it. Answers how many are ready now.
local function due_move(k, p, now)
  if #p.ids > 0 then
    redis.call('ZREM', k.delayed, unpack(p.ids))
    redis.call('HDEL', k.jobs, unpack(p.ids))
    ready_back(k, p.ids, p.records)
    ledger_add(k.stats, 'promoted', #p.ids)
  end
  for _, id in ipairs(p.lost) do
    redis.call('ZREM', k.delayed, id)
    lose_body(k, id, redis.call('HGET', k.state, id), now)
  end
  ledger_add(k.stats, 'lost_body_delayed', #p.lost)
  return #p.ids
end
