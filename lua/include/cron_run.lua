--- How an entry's tick becomes a job. k has the keys of admit and of cancel, and cron.
--- @include admit
--- @include cancel
--- @include cron
--- @include place
--- @include waiting

local function cron_id(name, word)
  return 'cron:' .. name .. ':' .. word
end

-- Reads every key that may be written, before the first write.
local function cron_touch(k)
  waiting_touch(k)
  touch('LLEN', k.wake, k.due)
  touch('HLEN', k.unique, k.stats, k.jobs, k.state, k.results, k.errors, k.log, k.order,
        k.progress)
  touch('ZCARD', k.delayed, k.dead, k.kept, k.windows)
end

-- Does this job still wait or run? One that is dead, or done and kept, does not.
local function cron_lives(k, id)
  local place = record_of(k, id) and place_of(k, id)
  return place == 'ready' or place == 'delayed' or is_processing(k, id)
end

-- cron_decide(k, e, name): may a job be made now, as the entry wants it when the one
-- before still waits or runs? RUN; SKIP, WAIT; REPLACE: after calling it off. With its id.
local function cron_decide(k, e, name)
  local holder = e.last ~= '-' and cron_id(name, e.last)
  if not holder or not cron_lives(k, holder) then
    return 'RUN', ''
  end
  local overlap = cron_option(e.def, 'overlap') or 'allow'
  return ({allow = 'RUN', skip = 'SKIP', queue = 'WAIT', replace = 'REPLACE'})[overlap] or 'RUN',
    holder
end

-- cron_make(k, e, name, word, at, q, now, later): makes the job of tick or run `word`, not
-- before `at` ("@ms", or empty). q: engine, paused, payload_max and long of config. Answers
-- nil, or why it was refused: OTHER, UNIQUE, BIG. A
-- job that is there already with the same record is this one: the server went back in time.
local function cron_make(k, e, name, word, at, q, now, later)
  local template = string.match(e.def, '^[^\n]*\n(.*)$') or ''
  local head, tail = string.match(template, '^(%d+ %S+)(.*)$')
  if not head or not string.find(tail, '\n', 1, true) then
    return 'OTHER', 'its template cannot be read'
  end
  local keys = record_unique(template)
  local key, line = string.match(keys, '^[^=]+'), order_key(keys)
  local unique = keys == '-' and '' or (cron_option(e.def, 'window') or '0') .. ' ' .. key
    .. (line and ' =' .. line or '')
  local max_bytes = tonumber(q[3] or '') or PAYLOAD_MAX
  local d, notes = admit_decide(k, {cron_id(name, word), head, tail, unique, at}, 1, 5, true,
                                max_bytes, now, later)
  if notes[2] and notes[2] ~= 'EXISTS' then
    return notes[2], notes[3]
  end
  if d.long and not q[4] then
    redis.call('HSET', k.config, 'long', '1')
  end
  admit_look(k)
  admit_apply(k, d, q[2])
  e.last, e.at, e.fired = word, digits(now), e.fired + 1
  return nil
end

-- Calls the job before off, for REPLACE. Answers its worker when it runs, else ''.
local function cron_replace(k, holder, test, now)
  local plan = cancel_plan(k, {holder}, 1, test)
  cancel_apply(k, plan, now)
  return plan[1].word == 'FLAGGED' and plan[1].detail or ''
end
