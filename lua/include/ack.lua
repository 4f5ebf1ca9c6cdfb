--- ack_apply(k, argv, first, words, held, notes, gone, now): ends the deliveries as done.
-- Items of `words` words are id, token, result, facts, ...; held, notes and gone (its `plain`)
-- come from answer_check(). Used by ack, ack_then and exchange.
--- @include answer
--- @include errors
--- @include memory

local SMALL_RESULTS = 256 -- bytes in a call: not worth asking whether the server is full

-- Those who wait get the result also when the job keeps none.
--- @rare ack_tell
local function ack_tell(k, argv, first, words, ids, kept, dropped, notes)
  local results, refused, is_kept = {}, {}, {}
  for i = 1, #notes, 2 do
    refused[notes[i]] = true
  end
  for i = first, #argv, words do -- an id may be there twice, once of a delivery that is over
    if not refused[digits((i - first) / words)] then
      results[argv[i]] = argv[i + 2]
    end
  end
  for i = 2, #kept, 2 do
    is_kept[kept[i]] = true
  end
  for _, id in ipairs(ids) do
    local stored = is_kept[id] and not dropped
    ended(k, id, stored and 'kept' or 'done', stored and '' or results[id])
  end
end

-- The server is full: the jobs are done, their results are not kept, and that is said.
--- @rare ack_drop
local function ack_drop(k, results, now)
  for i = 1, #results, 2 do
    errors_add(k.errors, results[i], now, 'result_dropped',
               'the server was full: ' .. #results[i + 1] .. ' bytes not kept')
  end
  ledger_add(k.stats, 'results_dropped', #results / 2)
end

-- kept is score, id, score, id, ... Answers the bytes of their records.
local function ack_store(k, kept)
  local ids, bytes = {}, 0
  for i = 2, #kept, 2 do
    ids[#ids + 1] = kept[i]
  end
  held_store(k, ids)
  for _, id in ipairs(ids) do
    bytes = bytes + redis.call('HSTRLEN', k.jobs, id)
  end
  return bytes
end

-- The deliveries of which more is to be known than that they are over: they hold a unique
-- key, or keep a result. Adds the ids of all to ids, of those that keep nothing to gone.
-- Answers those that are kept as score, id, ..., and whether their results were dropped.
--- @rare ack_held
local function ack_held(k, argv, held, ids, gone, now)
  local kept, states, results, large = {}, {}, {}, 0
  for _, h in ipairs(held) do
    local flag, key, keep = string.match(h.text, STATE_END)
    local s = (flag ~= '-' or keep ~= '0') and state_read(h.text)
    ids[#ids + 1] = h.id
    if flag ~= '-' then
      progress_over(k, h.id, s, 'done', now)
    end
    unique_next(k, key, h.id)
    if keep == '0' then
      unique_free(k.unique, key, h.id)
      gone[#gone + 1] = h.id
    else
      unique_move(k.unique, key, h.id, 'k')
      local result = argv[h.at + 2]
      s.attempts, s.lost = s.attempts + 1, 0
      kept[#kept + 1] = now + keep
      kept[#kept + 1] = h.id
      states[#states + 1] = h.id
      states[#states + 1] = state_text(s)
      large = large + #result
      if result ~= '' then
        results[#results + 1] = h.id
        results[#results + 1] = result
      end
      if argv[h.at + 3] ~= '' then
        errors_add(k.errors, h.id, now, 'done', '', s, s.worker, argv[h.at + 3])
      end
    end
  end
  if #kept == 0 then
    return kept, false
  end

  local dropped = large > SMALL_RESULTS and memory_is_full()
  local bytes = ack_store(k, kept)
  redis.call('ZADD', k.kept, unpack(kept))
  redis.call('HSET', k.state, unpack(states))
  if dropped then
    ack_drop(k, results, now)
  elseif #results > 0 then
    redis.call('HSET', k.results, unpack(results))
    bytes = bytes + large
  end
  redis.call('HINCRBY', k.stats, 'kept_bytes', bytes)
  ledger_add(k.stats, 'kept_in', #kept / 2)
  return kept, dropped
end

local function ack_apply(k, argv, first, words, held, notes, gone, now)
  if #held + #gone > 0 then
    ledger_add(k.stats, 'done', #held + #gone) -- stats was not read: it comes first
    local ids, kept, dropped = {unpack(gone)}, {}, false
    if #held > 0 then
      kept, dropped = ack_held(k, argv, held, ids, gone, now)
    end
    held_finish(k, gone)
    remove_jobs(k, gone)
    if k.waited then
      ack_tell(k, argv, first, words, ids, kept, dropped, notes)
    end
  end
  if #notes > 0 then
    answer_count(k, notes)
  end
end
