--- reclaim_jobs(k, lost, now, later, death): takes back jobs whose worker is gone.
-- lost is a list of {id=, token=, text=state or false, charged=bool}, oldest first. A
-- charged loss counts against max_deliveries; the first goes back to the front at
-- once, later ones wait 1 s * 2^n, so a pill that kills in milliseconds cannot spin.
-- death says how it ended, if somebody saw it.
-- Answers how many went to ready, to delayed, to dead, and ended as cancelled.
--- @include clock
--- @include held
--- @include ledger
--- @include unique_next
--- @include errors
--- @include remove
--- @include due
--- @include dead
--- @include touch
--- @include progress_over

local LOSS_DELAY_MAX = 3600000

-- reclaim_touch(k): reads what reclaim_jobs() may write, but for the places of the engine.
local function reclaim_touch(k)
  ended_touch(k)
  touch('HLEN', k.jobs, k.state, k.results, k.errors, k.log, k.stats, k.claims, k.unique, k.order,
        k.progress)
  touch('ZCARD', k.delayed, k.dead)
  touch('LLEN', k.wake, k.due)
end

-- A state that was deleted by hand is made anew, so that the job lives on.
local function lost_state(k, text, now)
  return text and state_read(text) or {
    token = '0', worker = '-', flag = '-', unique = '-', keep = '0', deliveries = 1,
    attempts = 0, lost = 0, interrupted = 0, snoozes = 0, started = digits(now),
    max_deliveries = '3', progress = ''}
end

local function reclaim_jobs(k, lost, now, later, death)
  local finish, store, front, wait, states, cancelled, died = {}, {}, {}, {}, {}, {}, {}
  local how = death and death ~= '' and ': ' .. death or ''
  if #lost == 0 then
    return 0, 0, 0, 0
  end
  local token = redis.call('HINCRBY', k.stats, 'tokens', #lost) - #lost
  for i, l in ipairs(lost) do
    local s = lost_state(k, l.text, now)
    local before, worker = tonumber(s.lost), s.worker
    s.token, s.worker = digits(token + i), '-'
    s.lost = before + (l.charged and 1 or 0)
    if s.flag == 'c' then
      cancelled[#cancelled + 1], finish[#finish + 1] = l.id, l.id
      unique_free(k.unique, s.unique, l.id)
      unique_next(k, s.unique, l.id)
      ended(k, l.id, 'cancelled', '')
      progress_over(k, l.id, s, 'cancelled', now)
    else
      local gone = held_gone(k, l.id)
      local max = tonumber(s.max_deliveries)
      if gone or (l.charged and max > 0 and s.lost >= max) then
        local into = gone and finish or store
        died[#died + 1], into[#into + 1] = l.id, l.id
        unique_move(k.unique, s.unique, l.id, gone and '-' or 'x')
        unique_next(k, s.unique, l.id)
        redis.call('ZADD', k.dead, now, l.id)
        if gone then
          redis.call('HSET', k.jobs, l.id, '1 - ' .. digits(now) .. ' lost_body=1\n')
          errors_add(k.errors, l.id, now, 'lost_body', 'the stored job was gone')
        else
          errors_add(k.errors, l.id, now, 'lost_worker',
                     'worker ' .. worker .. ' died with it, loss ' .. s.lost .. ' of ' .. max .. how, s, worker)
        end
      elseif l.charged and before >= 1 then
        unique_move(k.unique, s.unique, l.id, '')
        wait[#wait + 1] = later + math.min(1000 * 2 ^ math.min(before - 1, 30), LOSS_DELAY_MAX)
        wait[#wait + 1], store[#store + 1] = l.id, l.id
        errors_add(k.errors, l.id, now, 'lost', 'worker ' .. worker .. ' was lost' .. how, s, worker)
      else
        front[#front + 1] = l.id
        unique_move(k.unique, s.unique, l.id, '')
        if l.charged then
          errors_add(k.errors, l.id, now, 'lost', 'worker ' .. worker .. ' was lost' .. how, s, worker)
        end
      end
      states[#states + 1] = l.id
      states[#states + 1] = state_text(s)
    end
  end

  held_finish(k, finish)
  held_store(k, store)
  if #states > 0 then
    redis.call('HSET', k.state, unpack(states))
  end
  remove_jobs(k, cancelled)
  ledger_add(k.stats, 'reclaimed', held_front(k, front))
  if #wait > 0 then
    delayed_add(k.delayed, k.due, wait)
  end
  ledger_add(k.stats, 'reclaimed_delayed', #wait / 2)
  dead_in(k, died)
  ledger_add(k.stats, 'buried', #died)
  ledger_add(k.stats, 'cancelled_processing', #cancelled)
  return #front, #wait / 2, #died, #cancelled
end
