--- reserve_plan(k, r, now) and reserve_apply(k, r, plan, now, later, reply): as those of the
-- list engine. What went back to the front is handed out first, then what never was: the
-- entries behind the last one that the group gave out. They are read to be judged, and then
-- claimed without being sent once more.
--- @include clock
--- @include ledger
--- @include unique_next
--- @include handing
--- @include touch

local REFUSED_MAX = 100 -- lost, late and shelved jobs of one call
local SLICE = 64        -- short records read at once

-- Decide: what becomes of the job of this entry? text: its state; front: its count if it was
-- handed out before, else 0. Answers whether to stop here.
local function reserve_consider(k, r, c, entry, id, record, text, front, now)
  if c.n > 0 and c.bytes + #record > r.bytes then
    c.more = true
    return true
  elseif (text or front > 0) and c.n >= r.free then
    return true
  end
  local refused = c.lost
  if record == '' then
    refused[#refused + 1] = {id, text}
  elseif not choose_one(k, r, c, id, text, record, now) then
    c.entries[c.n], c.counts[c.n] = entry, front
    c.stated = c.stated or text or front > 0 or c.ends[c.n] or r.keep ~= '0'
    return false
  else
    refused = #c.lost > c.lost_n and c.lost or #c.late > c.late_n and c.late or c.shelved
  end
  c.lost_n, c.late_n = #c.lost, #c.late
  refused[#refused].entry, refused[#refused].record = entry, record
  c.more = #c.lost + #c.late + #c.shelved >= REFUSED_MAX
  return c.more
end

-- The state of the job of an entry; none can be where the id is the entry's and it was
-- never handed out, in this group or in one that was destroyed.
local function reserve_text(k, c, id)
  if c.states == nil then
    c.states = redis.call('HLEN', k.state) > 0
  end
  return c.states and redis.call('HGET', k.state, id)
end

local function reserve_front(k, r, c, now)
  local want, from = r.free + r.ahead, '-'
  while c.n < want do
    local rows = redis.call('XPENDING', k.stream, GROUP, from, '+', math.min(want - c.n, SLICE), FRONT)
    for _, row in ipairs(rows) do
      local found = redis.call('XRANGE', k.stream, row[1], row[1])[1]
      local record, id, text = '', 'lost-' .. row[1], false
      if found then
        record, id = entry_job(found[1], found[2])
        text = reserve_text(k, c, id)
      end
      if reserve_consider(k, r, c, row[1], id, record, text, row[4], now) then
        return false
      end
      from = '(' .. row[1]
    end
    if #rows == 0 then
      return true
    end
  end
  return false
end

-- Answers whether all is taken.
local function reserve_fresh(k, r, c, now)
  local want, from = r.free + r.ahead, '(' .. k.group['last-delivered-id']
  while c.n < want do
    local n = r.long and 1 or math.min(want - c.n + 1, SLICE) -- one more: is that all?
    local found = redis.call('XRANGE', k.stream, from, '+', 'COUNT', n)
    for i = 1, #found do
      if c.n == want then
        return false
      end
      local entry, flat = found[i][1], found[i][2]
      local record, id, text = flat[2], entry, false
      if #flat ~= 2 or flat[1] ~= 'j' then
        record, id = entry_job(entry, flat)
      end
      if id ~= entry or c.generation then
        text = reserve_text(k, c, id)
      end
      if reserve_consider(k, r, c, entry, id, record, text, 0, now) then
        return false
      end
    end
    if #found < n then
      return true
    end
    from = '(' .. found[n][1]
  end
  return false
end

local function reserve_plan(k, r, now)
  local c = {ids = {}, texts = {}, records = {}, ends = {}, entries = {}, counts = {}, n = 0,
             bytes = 0, lost = {}, lost_n = 0, late = {}, late_n = 0, shelved = {}, more = false}
  c.again = claims_saved(k, r)
  c.generation = r.generation and r.generation ~= '1' and r.generation or nil
  k.len = redis.call('XLEN', k.stream)
  c.drained = k.len == 0
  if not c.drained and not group_again(k) then
    c.more = true -- it is made now: call again
  elseif not c.drained and not c.again and not r.paused and r.free + r.ahead > 0
         and (k.group.pending == 0 or reserve_front(k, r, c, now)) then
    c.drained = reserve_fresh(k, r, c, now)
  end
  c.odd = #c.lost + #c.late + #c.shelved > 0
  if c.odd or c.opens then
    ended_touch(k)
    touch('HLEN', k.stats, k.ids, k.jobs, k.unique, k.errors, k.results, k.log, k.order)
    touch('ZCARD', k.delayed, k.dead)
    touch('LLEN', k.due, k.wake)
  end
  if c.odd or c.stated then
    touch('HLEN', k.state)
  end
  if not c.drained then
    c.marked = redis.call('LLEN', k.wake) > 0
  end
  return c
end

-- Apply: these leave the stream.
local function reserve_drop(k, list)
  local entries, named = {}, {}
  for i, l in ipairs(list) do
    entries[i] = l.entry
    if l[1] ~= l.entry then
      named[#named + 1] = l[1]
    end
  end
  if #entries > 0 then
    redis.call('XACK', k.stream, GROUP, unpack(entries))
    redis.call('XDEL', k.stream, unpack(entries))
  end
  if #named > 0 then
    redis.call('HDEL', k.ids, unpack(named))
  end
end

-- Apply: what is next and is not handed out.
--- @rare reserve_refuse
local function reserve_refuse(k, r, c, now, later)
  reserve_drop(k, c.lost)
  reserve_drop(k, c.late)
  reserve_drop(k, c.shelved)
  reserve_lose(k, c, now)
  reserve_expire(k, c)
  for _, l in ipairs(c.shelved) do
    redis.call('HSET', k.jobs, l[1], l.record)
  end
  reserve_shelve(k, r, c, now, later)
end

-- Apply: the entries become this worker's.
local function reserve_claim(k, r, c, now)
  local consumer, at = consumer_name(r.worker, c.generation), claim_time(now)
  local fresh = {}
  for i = 1, c.n do
    if c.counts[i] > 0 then
      redis.call('XCLAIM', k.stream, GROUP, consumer, 0, c.entries[i], 'TIME', at,
                 'RETRYCOUNT', c.counts[i] + 1, 'JUSTID')
    else
      fresh[#fresh + 1] = c.entries[i]
    end
  end
  local last = fresh[#fresh]
  for _, word in ipairs(last and {'TIME', at, 'RETRYCOUNT', 1, 'FORCE', 'JUSTID', 'LASTID', last} or {}) do
    fresh[#fresh + 1] = word
  end
  if last then
    redis.call('XCLAIM', k.stream, GROUP, consumer, 0, unpack(fresh))
  end
end

-- The state of delivery i, and whether it has to be stored.
local function reserve_state(r, c, i, token, now_text)
  local ends = c.ends[i] or {r.keep, '-', DELIVERIES_MAX}
  local s = c.texts[i] and state_read(c.texts[i])
  local plain = ends[1] == '0' and ends[2] == '-' and ends[3] == DELIVERIES_MAX
  s = s or {flag = '-', deliveries = c.counts[i], attempts = 0, lost = 0, interrupted = 0,
            snoozes = 0, progress = ''}
  if s.flag == 'c' then
    s.flag = '-' -- of an id whose entry was deleted while it ran: nobody called this one off
  end
  s.token, s.worker, s.started, s.deliveries = token, r.worker, now_text, digits(s.deliveries + 1)
  s.keep, s.unique, s.max_deliveries = ends[1], ends[2], ends[3]
  return state_text(s), c.texts[i] or not plain
end

-- Apply: the taken ones get a lease and a token.
local function reserve_take(k, r, c, now, reply)
  local states, claims, at = {}, {}, #reply
  local now_text = digits(now)
  local tail = ' ' .. r.worker .. ' - - 0 1 0 0 0 0 ' .. now_text .. ' ' .. DELIVERIES_MAX .. '|'
  local first = '.1' .. (c.generation and '.' .. c.generation or '')
  ledger_add(k.stats, 'deliveries', c.n) -- where nothing is odd stats was not read: first
  reserve_claim(k, r, c, now)
  for i = 1, c.n do
    local id, ends = c.ids[i], c.ends[i]
    local token, text, stored = c.entries[i] .. first, nil, false
    if c.texts[i] or ends or c.counts[i] > 0 or r.keep ~= '0' then
      token = entry_token(c.entries[i], c.counts[i] + 1, c.generation)
      text, stored = reserve_state(r, c, i, token, now_text)
    else
      text = token .. tail
    end
    if stored then
      states[#states + 1], states[#states + 2] = id, text
    end
    if ends and string.find(ends[2], '^[^=]+=%a*s') then
      unique_free(k.unique, ends[2], id)
    end
    reply[at + 1], reply[at + 2], reply[at + 3] = id, text, c.records[i]
    at = at + 3
    claims[i] = id .. '\t' .. token .. (i > r.free and '\t1\n' or '\t0\n')
  end
  if #states > 0 then
    redis.call('HSET', k.state, unpack(states))
  end
  return table.concat(claims)
end

-- The rule of wake_worker(); the marker was looked for in the plan, and k.wakes_later keeps
-- those that let others in from putting one.
local function reserve_wake(k, r, c)
  local look = k.let_in or not c.drained
  if look and c.marked == nil then
    c.marked = redis.call('LLEN', k.wake) > 0
  end
  if not r.paused and look and not c.marked and ready_any(k) then
    redis.call('LPUSH', k.wake, '1')
  end
end

local function reserve_apply(k, r, c, now, later, reply)
  if c.more and not k.group then
    group_make(k) -- it was destroyed
  end
  if c.again then
    claims_repeat(k, r, c.again, now, reply)
    reserve_wake(k, r, c)
    return 'REPEAT'
  end
  if c.odd then
    reserve_refuse(k, r, c, now, later)
  end
  claims_write(k, r, now, c.n > 0 and reserve_take(k, r, c, now, reply) or '')
  reserve_wake(k, r, c)
  return reserve_word(r, c)
end
