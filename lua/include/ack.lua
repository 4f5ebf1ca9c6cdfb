--- ack_apply(k, argv, first, held, notes, gone, now): ends the deliveries as done.
-- Items are id, token, result; held, notes and gone (its `plain`) come from
-- answer_check(). Used by ack and by exchange.
--- @include answer

-- Those who wait get the result also when the job keeps none.
local function ack_tell(k, argv, first, ids, kept)
  local results, is_kept = {}, {}
  for i = #argv - 2, first, -3 do -- of an id given twice the first one counts
    results[argv[i]] = argv[i + 2]
  end
  for i = 2, #kept, 2 do
    is_kept[kept[i]] = true
  end
  for _, id in ipairs(ids) do
    ended(k, id, is_kept[id] and 'kept' or 'done', is_kept[id] and '' or results[id])
  end
end

local function ack_apply(k, argv, first, held, notes, gone, now)
  if #held + #gone == 0 then
    answer_count(k, notes)
    return
  end

  local ids, kept, states, results, bytes = {unpack(gone)}, {}, {}, {}, 0
  for _, h in ipairs(held) do
    local _, key, keep = string.match(h.text, STATE_END)
    ids[#ids + 1] = h.id
    unique_next(k, key, h.id)
    if keep == '0' then
      unique_free(k.unique, key, h.id)
      gone[#gone + 1] = h.id
    else
      unique_move(k.unique, key, h.id, 'k')
      local s, result = state_read(h.text), argv[h.at + 2]
      s.attempts, s.lost = s.attempts + 1, 0
      kept[#kept + 1] = now + keep
      kept[#kept + 1] = h.id
      states[#states + 1] = h.id
      states[#states + 1] = state_text(s)
      bytes = bytes + #result + redis.call('HSTRLEN', k.jobs, h.id)
      if result ~= '' then
        results[#results + 1] = h.id
        results[#results + 1] = result
      end
    end
  end

  redis.call('ZREM', k.processing, unpack(ids))
  remove_jobs(k, gone)
  if #kept > 0 then
    redis.call('ZADD', k.kept, unpack(kept))
    redis.call('HSET', k.state, unpack(states))
    if #results > 0 then
      redis.call('HSET', k.results, unpack(results))
    end
    redis.call('HINCRBY', k.stats, 'kept_bytes', bytes)
    ledger_add(k.stats, 'kept_in', #kept / 2)
  end
  ledger_add(k.stats, 'done', #ids)
  answer_count(k, notes)
  if k.waited then
    ack_tell(k, argv, first, ids, kept)
  end
end
