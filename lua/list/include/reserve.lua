--- reserve_plan(k, r, now) and reserve_apply(k, r, plan, now, later, reply): hand out up
-- to r.free + r.ahead jobs. r: worker, call (its number), free, ahead, lease (ms), bytes,
-- paused, long (a record of the queue may be long), types (' a b ': what the worker runs;
-- '! a b ': everything but; '': everything), keep (ms, of jobs that do not say it), knows (an
-- empty table). The plan reads every key that the other will write. Adds id, state, record of
-- each job to reply and answers the word. Used by reserve and by exchange.
--- @include clock
--- @include ledger
--- @include unique_next
--- @include handing
--- @include touch
--- @include places

local SKIPS_MAX = 1000
local REFUSED_MAX = 100 -- lost, late and shelved jobs of one call
local SLICE = 64        -- short records read at once

-- The size of a record, when records were read by the slice; they are false where there are
-- long ones, which are read one by one after a look at their sizes.
local function record_size(k, records, i, id)
  if records then
    return records[i] and #records[i] or 0
  end
  return redis.call('HSTRLEN', k.jobs, id)
end

-- Decide: looks at the ids that are next and says what becomes of each. When a record was
-- deleted by hand, its id may have come in again, and stand twice: here, or also in one of
-- the sets. Into dead and kept nothing comes that was never delivered.
local function reserve_choose(k, r, c, now)
  local want, chosen, none = r.free + r.ahead, {}, {}
  -- Where nothing runs and nothing ran there is nothing to know of a job but its record.
  local plain = redis.call('EXISTS', k.tombs, k.state, k.processing, k.delayed) == 0
  c.tombs = plain and 0 or redis.call('HLEN', k.tombs)
  while c.n < want do
    -- One more than wanted tells whether that is all.
    local slice = r.long and want + 1 or math.min(want - c.n + 1, SLICE)
    local ids = redis.call('LRANGE', k.ready, -c.used - slice, -c.used - 1)
    if #ids == 0 then
      c.drained = true
      return
    end
    local marks = c.tombs > 0 and redis.call('HMGET', k.tombs, unpack(ids))
    local texts = plain and none or redis.call('HMGET', k.state, unpack(ids))
    local runs = plain and none or redis.call('ZMSCORE', k.processing, unpack(ids))
    local waits = plain and none or redis.call('ZMSCORE', k.delayed, unpack(ids))
    local records = not r.long and redis.call('HMGET', k.jobs, unpack(ids))
    local placed
    for i = #ids, 1, -1 do
      local id, text = ids[i], texts[i]
      local refused = false
      if c.n == want then
        return
      end
      placed = placed or text and places_of(k, ids)
      if marks and marks[i] and not chosen[id] then
        if #c.skipped == SKIPS_MAX then
          c.more = true
          return
        end
        c.skipped[#c.skipped + 1] = id
      else
        local size = record_size(k, records, i, id)
        if c.n > 0 and c.bytes + size > r.bytes then
          c.more = true
          return
        end
        if text and c.n >= r.free then
          return
        end
        if chosen[id] or runs[i] or waits[i] or text and placed[id] then
          c.lost[#c.lost + 1] = {id, text, true}
          refused = true
        elseif size == 0 and redis.call('HEXISTS', k.jobs, id) == 0 then
          c.lost[#c.lost + 1] = {id, text}
          refused = true
        else
          refused = choose_one(k, r, c, id, text,
                               records and records[i] or redis.call('HGET', k.jobs, id), now)
        end
      end
      chosen[id] = true
      c.used = c.used + 1
      if refused and #c.lost + #c.late + #c.shelved >= REFUSED_MAX then
        c.more = true
        return
      end
    end
    if #ids < slice then
      c.drained = true
      return
    end
  end
end

-- Apply: the taken ones get a lease and a token.
local function reserve_take(k, r, c, now, reply)
  local n = c.n
  local token = redis.call('HINCRBY', k.stats, 'tokens', digits(n)) - n
  local leases, states, claims, at = {}, {}, {}, #reply
  local lease_end, now_text = digits(now + r.lease), digits(now)
  local plain = ' ' .. r.worker .. ' - - ' .. r.keep .. ' 1 0 0 0 0 ' .. now_text .. ' ' .. DELIVERIES_MAX .. '|'
  for i = 1, n do
    local id, ends, number = c.ids[i], c.ends[i], digits(token + i)
    local text
    local s = c.texts[i] and state_read(c.texts[i]) -- unreadable (changed by hand): made anew
    if s then
      s.token, s.worker, s.started = number, r.worker, now_text
      if s.flag == 'c' then
        s.flag = '-' -- of an id whose entry was deleted while it ran, before the queue moved
      end
      s.deliveries = s.deliveries + 1
      s.keep, s.unique, s.max_deliveries = r.keep, '-', DELIVERIES_MAX
      if ends then
        s.keep, s.unique, s.max_deliveries = ends[1], ends[2], ends[3]
      end
      text = state_text(s)
    elseif ends then
      text = number .. ' ' .. r.worker .. ' - ' .. ends[2] .. ' ' .. ends[1]
        .. ' 1 0 0 0 0 ' .. now_text .. ' ' .. ends[3] .. '|'
    else
      text = number .. plain
    end
    if ends and string.find(ends[2], '^[^=]+=%a*s') then
      unique_free(k.unique, ends[2], id)
    end
    leases[2 * i - 1], leases[2 * i] = lease_end, id
    states[2 * i - 1], states[2 * i] = id, text
    reply[at + 1], reply[at + 2], reply[at + 3] = id, text, c.records[i]
    at = at + 3
    claims[i] = id .. '\t' .. number .. (i > r.free and '\t1\n' or '\t0\n')
  end
  redis.call('ZADD', k.processing, unpack(leases))
  redis.call('HSET', k.state, unpack(states))
  ledger_add(k.stats, 'deliveries', n)
  return table.concat(claims)
end

-- What is written for jobs that are not handed out, or let their keys go.
--- @rare reserve_touch
local function reserve_touch(k)
  ended_touch(k)
  touch('HLEN', k.stats, k.unique, k.errors, k.results, k.log, k.order)
  touch('ZCARD', k.dead)
  touch('LLEN', k.due, k.wake)
end

local function reserve_plan(k, r, now)
  local c = {ids = {}, texts = {}, records = {}, ends = {}, n = 0, bytes = 0, lost = {},
             late = {}, shelved = {}, skipped = {}, used = 0, more = false}
  c.again = claims_saved(k, r)
  if not c.again and not r.paused and r.free + r.ahead > 0 then
    reserve_choose(k, r, c, now)
  end
  c.odd = #c.skipped + #c.lost + #c.late + #c.shelved > 0
  if c.odd or c.opens then
    reserve_touch(k)
  end
  -- The rule of wake_worker(), for what is left when the chosen ones are gone.
  if not r.paused and not c.drained then
    local left = redis.call('LLEN', k.ready) - c.used
    c.wake = left > (c.tombs or redis.call('HLEN', k.tombs)) - #c.skipped
      and redis.call('LLEN', k.wake) == 0
  end
  return c
end

-- k.wakes_later keeps those that let others in from putting one.
local function reserve_wake(k, c)
  if k.let_in then
    wake_worker(k, k.paused)
  elseif c.wake then
    redis.call('LPUSH', k.wake, '1')
  end
end

-- Apply: what is next and is not handed out.
--- @rare reserve_refuse
local function reserve_refuse(k, r, c, now, later)
  if #c.skipped > 0 then
    redis.call('HDEL', k.tombs, unpack(c.skipped))
    ledger_add(k.stats, 'skipped', #c.skipped)
  end
  reserve_lose(k, c, now)
  reserve_expire(k, c)
  reserve_shelve(k, r, c, now, later)
end

local function reserve_apply(k, r, c, now, later, reply)
  if c.again then
    claims_repeat(k, r, c.again, now, reply)
    reserve_wake(k, c)
    return 'REPEAT'
  end
  if c.odd then
    reserve_refuse(k, r, c, now, later)
  end
  -- Where nothing is refused stats was not read: it comes first.
  local claims = c.n > 0 and reserve_take(k, r, c, now, reply) or ''
  if c.used > 0 then
    redis.call('RPOP', k.ready, digits(c.used))
  end
  claims_write(k, r, now, claims)
  reserve_wake(k, c)
  return reserve_word(r, c)
end
