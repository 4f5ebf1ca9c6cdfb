--- What both directions of a move share. config holds, while it lasts,
--   moving  TO WAS PHASE    WAS: 1 if somebody had paused the queue before
--   moved   COPIED SIGNATURE, newline, the last one that was copied
--   moving_at  BEGAN SEEN: when it began, and about when its last step was, ms
-- PHASE: copy; again (what a copy that began anew left over goes first); sweep (the queue is
-- moved, or it stays: what is left over goes, then it is over).
--- @include clock
--- @include touch
--- @include memory
--- @include engine
--- @include ended

-- All that these count changes the jobs that wait in another way than to add one at the back.
local MOVE_CHANGES = {'deliveries', 'cancelled_ready', 'expired_ready', 'lost_body_ready',
                      'deferred', 'shelved', 'released', 'reclaimed', 'replaced', 'skipped'}

local function move_signature(k, more)
  local counts = redis.call('HMGET', k.stats, unpack(MOVE_CHANGES))
  for i = 1, #MOVE_CHANGES do
    counts[i] = counts[i] or '0'
  end
  return table.concat(counts, ',') .. ',' .. more
end

local function move_read(moving, moved)
  local m = {}
  m.to, m.was, m.phase = string.match(moving or '', '^(%a+) ([01]) (%a+)$')
  m.copied, m.signature, m.last = string.match(moved or '', '^(%d+) (%S+)\n(.*)$')
  m.copied = tonumber(m.copied)
  return m.to and m or nil
end

local function move_write(k, m)
  redis.call('HSET', k.config, 'moving', m.to .. ' ' .. m.was .. ' ' .. m.phase)
  if m.copied then
    redis.call('HSET', k.config, 'moved', digits(m.copied) .. ' ' .. m.signature .. '\n' .. m.last)
  else
    redis.call('HDEL', k.config, 'moved')
  end
end

-- move_look(k, waits): what a step begins with. The word of an engine that is not ours, or nil,
-- what config says of the queue (engine, paused, moving, moved, moving_at, long), and the move, or
-- nil. waits: the key of what waits. All keys that both directions write are of their type.
local function move_look(k, waits)
  local q = redis.call('HMGET', k.config, 'engine', 'paused', 'moving', 'moved', 'moving_at', 'long')
  local word = engine_word(q[1], k.stats, k.jobs, waits)
  if word then
    return word
  end
  ended_touch(k)
  touch('HLEN', k.stats, k.jobs, k.state, k.errors, k.unique, k.order, k.ids)
  touch('ZCARD', k.delayed, k.dead, k.kept)
  touch('LLEN', k.ready, k.wake, k.due, k.next_ready)
  touch('XLEN', k.stream)
  return nil, q, move_read(q[3], q[4])
end

-- Somebody is at it: who looks at the queue can tell that from a move that was left. While it
-- waits for deliveries to end a step does nothing else: written once a second.
local function move_seen(k, at, now)
  local began, seen = string.match(at or '', '^(%d+) (%d+)$')
  if not seen or now - seen >= 1000 then
    redis.call('HSET', k.config, 'moving_at', (began or digits(now)) .. ' ' .. digits(now))
  end
end

local function move_begin(k, to, who, paused, now)
  local m = {to = to, was = paused and '1' or '0', phase = 'copy'}
  if not paused then
    redis.call('HSET', k.config, 'paused', digits(now) .. ' ' .. who .. ' moving%20to%20' .. to)
  end
  move_write(k, m)
  move_seen(k, nil, now)
  return m
end

-- move_must_wait(runs): the answer as long as so many deliveries are not over, or the server has no
-- room for a copy; else nil.
local function move_must_wait(runs)
  if runs > 0 then
    return {'RUNS', digits(runs), '0'}
  elseif memory_is_full() then
    return {'FULL'}
  end
end

local function move_forget(k)
  redis.call('HDEL', k.config, 'moving', 'moved', 'moving_at')
end

-- The queue hands out jobs again, unless it did not before. waits: there are some.
local function move_end(k, m, waits)
  move_forget(k)
  if m.was == '0' then
    redis.call('HDEL', k.config, 'paused')
    if waits and redis.call('EXISTS', k.wake) == 0 then
      redis.call('LPUSH', k.wake, '1')
    end
  end
end
