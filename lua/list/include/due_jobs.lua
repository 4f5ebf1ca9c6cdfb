--- Due jobs become ready.
--- @include ready
--- @include ledger

-- due_plan(k, ids): reads what due_move() may write, and says what becomes of the ids.
local function due_plan(k, ids)
  ready_touch(k)
  return {ids = ids, more = false}
end

-- due_move(k, plan, now): does it. Answers how many are ready now.
local function due_move(k, p)
  if #p.ids > 0 then
    redis.call('ZREM', k.delayed, unpack(p.ids))
    ready_back(k, p.ids)
    ledger_add(k.stats, 'promoted', #p.ids)
  end
  return #p.ids
end
