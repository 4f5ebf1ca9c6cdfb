--- reserve_plan(k, r, now) and reserve_apply(k, r, plan, now): hand out up to
-- r.free + r.ahead jobs. r: worker, call (its number), free, ahead, lease (ms), bytes,
-- paused. The plan reads every key that the other will write. The answer is word,
-- jobs as id, state, record, id, state, record, ... Used by reserve and by exchange.
--- @include clock
--- @include state
--- @include ledger
--- @include unique
--- @include errors
--- @include dead
--- @include remove
--- @include touch
--- @include places

local SKIPS_MAX = 1000
local DELIVERIES_MAX = '3'

-- The options in a record's header that decide about its end.
local function header_options(record)
  local header = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  if not string.find(header, '=', 1, true) then
    return '0', '-', DELIVERIES_MAX, nil
  end
  local enqueued = string.match(header, '^%d+ %S+ (%d+)')
  local expires = string.match(header, ' expires=(%d+)')
  return string.match(header, ' keep=(%d+)') or '0',
    string.match(header, ' unique=(%S+)') or '-',
    string.match(header, ' max_deliveries=(%d+)') or DELIVERIES_MAX,
    expires and enqueued + expires
end

-- A job whose body is gone: dead, counted, with a stub in place of its record. If its id
-- lives again as another job, the stub gets a name of its own.
local function lose_body(k, id, text, now, is_copy)
  if is_copy then
    id, text = 'lost-' .. redis.call('HINCRBY', k.stats, 'tokens', 1), false
  end
  if text then
    unique_free(k.unique, string.match(text, '^%d+ %S+ %S+ (%S+) ') or '-', id)
  end
  redis.call('HSET', k.jobs, id, '1 - ' .. digits(now) .. ' lost_body=1\n')
  redis.call('ZADD', k.dead, now, id)
  errors_add(k.errors, id, now, 'lost_body', 'the stored job was gone')
  dead_in(k, {id})
end

-- The list of what the worker's last call got, if this is the repeat of that call.
local function claims_saved(k, r)
  local saved = redis.call('HGET', k.claims, r.worker)
  local call, list = string.match(saved or '', '^(%d+) %d+ %d+\n(.*)$')
  return call == r.call and list or nil
end

-- What of that list the worker still holds.
local function claims_repeat(k, r, list)
  local ids, tokens, jobs = {}, {}, {}
  for id, token in string.gmatch(list, '([^\t\n]+)\t(%d+)\t%d\n') do
    ids[#ids + 1], tokens[#tokens + 1] = id, token
  end
  if #ids == 0 then
    return jobs
  end
  local texts = redis.call('HMGET', k.state, unpack(ids))
  local scores = redis.call('ZMSCORE', k.processing, unpack(ids))
  for i = 1, #ids do
    if not held_word(texts[i], scores[i], tokens[i], r.worker) then
      jobs[#jobs + 1] = ids[i]
      jobs[#jobs + 1] = texts[i]
      jobs[#jobs + 1] = redis.call('HGET', k.jobs, ids[i]) or ''
    end
  end
  return jobs
end

-- Decide: looks at the ids that are next and says what becomes of each.
local function reserve_choose(k, r, c, now)
  local want = r.free + r.ahead
  local tombs, missing, chosen = redis.call('HLEN', k.tombs), c.missing, {}
  while #c.taken < want and not c.more do
    local ids = redis.call('LRANGE', k.ready, -c.used - want, -c.used - 1)
    if #ids == 0 then
      return c
    end
    local marks = tombs > 0 and redis.call('HMGET', k.tombs, unpack(ids))
    local texts = redis.call('HMGET', k.state, unpack(ids))
    local placed = missing and places_of(k, ids)
    for i = #ids, 1, -1 do
      local id, text = ids[i], texts[i]
      if #c.taken == want then
        break
      end
      if marks and marks[i] and not chosen[id] then
        if #c.skipped == SKIPS_MAX then
          c.more = true
          break
        end
        c.skipped[#c.skipped + 1] = id
        chosen[id] = true
      else
        local size = redis.call('HSTRLEN', k.jobs, id)
        if #c.taken > 0 and c.bytes + size > r.bytes then
          c.more = true
          return c
        end
        if text and #c.taken >= r.free then
          return c
        end
        if missing and (placed[id] or chosen[id]) then
          c.lost[#c.lost + 1] = {id, text, true}
        elseif size == 0 and redis.call('HEXISTS', k.jobs, id) == 0 then
          c.lost[#c.lost + 1] = {id, text}
          chosen[id] = true
        else
          local record = redis.call('HGET', k.jobs, id)
          local keep, key, max, expires = header_options(record)
          if expires and not text and expires <= now then
            c.late[#c.late + 1] = {id, key}
            chosen[id] = true
          else
            c.bytes = c.bytes + size
            chosen[id] = true
            c.taken[#c.taken + 1] = {id = id, text = text, record = record, keep = keep,
                                     key = key, max = max}
          end
        end
        if #c.lost + #c.late >= 100 then
          c.used = c.used + 1
          c.more = true
          return c
        end
      end
      c.used = c.used + 1
    end
  end
  return c
end

-- Apply: the taken ones get a lease and a token.
local function reserve_take(k, r, c, now)
  local token = redis.call('HINCRBY', k.stats, 'tokens', #c.taken) - #c.taken
  local leases, states, jobs, claims = {}, {}, {}, {}
  for i, t in ipairs(c.taken) do
    local text
    local s = t.text and state_read(t.text) -- unreadable (changed by hand): made anew
    if s then
      s.token, s.worker, s.started = digits(token + i), r.worker, digits(now)
      s.deliveries, s.keep, s.unique, s.max_deliveries = s.deliveries + 1, t.keep, t.key, t.max
      text = state_text(s)
    else
      text = digits(token + i) .. ' ' .. r.worker .. ' - ' .. t.key .. ' ' .. t.keep
        .. ' 1 0 0 0 0 ' .. digits(now) .. ' ' .. t.max .. '|'
    end
    leases[#leases + 1] = now + r.lease
    leases[#leases + 1] = t.id
    states[#states + 1] = t.id
    states[#states + 1] = text
    jobs[#jobs + 1] = t.id
    jobs[#jobs + 1] = text
    jobs[#jobs + 1] = t.record
    claims[i] = t.id .. '\t' .. digits(token + i) .. '\t' .. (i > r.free and '1' or '0') .. '\n'
  end
  redis.call('ZADD', k.processing, unpack(leases))
  redis.call('HSET', k.state, unpack(states))
  ledger_add(k.stats, 'deliveries', #c.taken)
  return jobs, table.concat(claims)
end

local function reserve_plan(k, r, now)
  local c = {taken = {}, lost = {}, late = {}, skipped = {}, used = 0, bytes = 0, more = false}
  c.again = claims_saved(k, r)
  c.marked = redis.call('LLEN', k.wake) > 0
  c.missing = bodies_missing(k)
  touch('HLEN', k.stats)
  if not c.again and not r.paused and r.free + r.ahead > 0 then
    reserve_choose(k, r, c, now)
  end
  if #c.lost + #c.late > 0 then
    touch('HLEN', k.unique, k.errors, k.results, k.log)
  end
  return c
end

-- The rule of wake_worker(); the marker was looked for in the plan.
local function reserve_wake(k, r, c)
  if not r.paused and not c.marked
     and redis.call('LLEN', k.ready) > redis.call('HLEN', k.tombs) then
    redis.call('LPUSH', k.wake, '1')
  end
end

local function reserve_apply(k, r, c, now)
  if c.again then
    local jobs = claims_repeat(k, r, c.again)
    reserve_wake(k, r, c)
    return 'REPEAT', jobs
  end
  if c.used > 0 then
    redis.call('RPOP', k.ready, c.used)
  end
  if #c.skipped > 0 then
    redis.call('HDEL', k.tombs, unpack(c.skipped))
    ledger_add(k.stats, 'skipped', #c.skipped)
  end
  for _, l in ipairs(c.lost) do
    lose_body(k, l[1], l[2], now, l[3])
  end
  ledger_add(k.stats, 'lost_body_ready', #c.lost)
  local late = {}
  for i, l in ipairs(c.late) do
    late[i] = l[1]
    unique_free(k.unique, l[2], l[1])
  end
  remove_jobs(k, late)
  ledger_add(k.stats, 'expired_ready', #late)

  local jobs, claims = {}, ''
  if #c.taken > 0 then
    jobs, claims = reserve_take(k, r, c, now)
  end
  redis.call('HSET', k.claims, r.worker,
             r.call .. ' ' .. digits(now) .. ' ' .. digits(r.lease) .. '\n' .. claims)
  reserve_wake(k, r, c)
  if r.paused then
    return 'PAUSED', jobs
  end
  if #c.taken == 0 and not c.more then
    return r.free + r.ahead == 0 and 'OK' or 'EMPTY', jobs
  end
  return c.more and 'MORE' or 'OK', jobs
end
