--- migrate: a step of moving a queue to the other engine. Called again and again.
--
-- @flags allow-oom
-- @transition ready -> ready
-- @transition ready -> dead
-- @key stream STREAM a job each, with its group
-- @key ids HASH id -> its entry
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key errors HASH id -> last errors
-- @key unique HASH unique key -> id that holds it
-- @key order HASH lines of the order keys
-- @key due LIST the marker that wakes the scheduler
-- @key waiters HASH id -> who waits for its end
-- @key stats HASH the ledger's counters
-- @key wake LIST the marker that wakes one worker
-- @key ready LIST ids that wait, taken from the right
-- @key next_ready LIST the list as it will be; ids whose record in jobs is left over
-- @key config HASH engine, limits, paused, moving
-- @arg now the test clock, ms; empty: the server's
-- @arg to list or stream
-- @arg who one word: who moves it
-- @arg limit at most so many jobs
-- @arg bytes at most so many of records; at least one job
-- @returns DONE it is stored by that engine
-- @returns RUNS so many deliveries are not over; nothing is handed out meanwhile
-- @returns COPIED so many jobs
-- @returns AGAIN what waited was changed: it is copied again from the start
-- @returns SWEPT so many records that were left over
-- @returns RESUMED somebody resumed the queue: it is not moved
-- @returns FULL the server has no room for the copy
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(limit)
--
-- Reply: word, number, jobs copied so far.
--
-- As the list's; here the records are copied too, and lie in jobs beside those of other
-- places until the queue is a list, or until they are swept because it stays.
--- @include migrate
--- @include group
--- @include long
--- @include entry
--- @include ledger
--- @include handing

local SLICE = 32 -- entries read at once: their size is known only then

-- How many deliveries are not over.
local function running()
  local n = 0
  if group_info(k) then
    for _, of in ipairs(redis.call('XPENDING', k.stream, GROUP)[4] or {}) do
      n = n + (of[1] == FRONT and 0 or tonumber(of[2]))
    end
  end
  return n
end

-- Takes away what next_ready names, but for jobs that have a record in jobs by right.
local function sweep()
  local ids = redis.call('LRANGE', k.next_ready, 0, limit - 1)
  if #ids == 0 then
    return 0
  end
  local delayed, dead = redis.call('ZMSCORE', k.delayed, unpack(ids)), redis.call('ZMSCORE', k.dead, unpack(ids))
  local kept, stale = redis.call('ZMSCORE', k.kept, unpack(ids)), {}
  for i, id in ipairs(ids) do
    if not (delayed[i] or dead[i] or kept[i]) then
      stale[#stale + 1] = id
    end
  end
  if #stale > 0 then
    redis.call('HDEL', k.jobs, unpack(stale))
  end
  redis.call('LPOP', k.next_ready, #ids)
  return #ids
end

-- Jobs in front whose entry was deleted by hand die here as they do in reserve: the copy would
-- know nothing of them.
local function bury_gone(now)
  local from, lost = '-', 0
  repeat
    local rows = group_info(k) and redis.call('XPENDING', k.stream, GROUP, from, '+', SLICE, FRONT) or {}
    for _, row in ipairs(rows) do
      if lost < tonumber(limit) and not entry_there(k, row[1]) then
        redis.call('XACK', k.stream, GROUP, row[1])
        lose_body(k, 'lost-' .. row[1], false, now)
        lost = lost + 1
      end
      from = '(' .. row[1]
    end
  until #rows < SLICE
  ledger_add(k.stats, 'lost_body_ready', lost)
  return lost > 0
end

-- Answers how many jobs, whether they were the last, and the last entry.
local function copy(last)
  local ids, records, size, long = {}, {}, 0, false
  local from = last == '' and '-' or '(' .. last
  repeat
    local entries = redis.call('XRANGE', k.stream, from, '+', 'COUNT', math.min(SLICE, limit - #ids))
    for _, e in ipairs(entries) do
      local record, id = entry_job(e[1], e[2])
      ids[#ids + 1] = id
      records[#records + 1] = id
      records[#records + 1] = record
      size, long, last = size + #record, long or #record > LONG, e[1]
      if size > tonumber(bytes) then
        break
      end
    end
    from = last == '' and '-' or '(' .. last
  until #entries == 0 or #ids == tonumber(limit) or size > tonumber(bytes)
  if #ids > 0 then
    redis.call('LPUSH', k.next_ready, unpack(ids))
    redis.call('HSET', k.jobs, unpack(records))
  end
  if long then
    redis.call('HSET', k.config, 'long', '1')
  end
  return #ids, #redis.call('XRANGE', k.stream, from, '+', 'COUNT', 1) == 0, last
end

local function switch()
  if redis.call('EXISTS', k.next_ready) == 1 then
    redis.call('RENAME', k.next_ready, k.ready)
  end
  redis.call('UNLINK', k.stream, k.ids)
  redis.call('HSET', k.config, 'engine', 'list')
end

-- Decide.
local now = clock(now_arg)
local word, q, m = move_look(k, k.stream)
if word then
  return {word}
end
if not m and to == 'stream' then
  return {'DONE', '0', '0'}
end

-- Apply.
if m then
  move_seen(k, q[5], now)
end
if m and m.to == 'list' and (to == 'stream' or not q[2]) then
  m = {to = 'stream', was = q[2] and m.was or '1', phase = 'sweep'}
  move_write(k, m)
  if not q[2] then
    return {'RESUMED'}
  end
end
if m and m.phase ~= 'copy' then
  local n = sweep()
  if redis.call('EXISTS', k.next_ready) == 0 then
    if m.phase == 'sweep' then
      move_end(k, m, redis.call('XLEN', k.stream) > 0)
      return {to == 'stream' and 'DONE' or 'SWEPT', digits(n), '0'}
    end
    m.phase, m.copied = 'copy', nil
    move_write(k, m)
  end
  return {'SWEPT', digits(n), '0'}
end
m = m or move_begin(k, to, who, q[2], now)
local wait = move_must_wait(running())
if wait then
  return wait
end
local signature = move_signature(k, '0')
if m.copied and m.signature ~= signature or not m.copied and bury_gone(now) then
  m.phase, m.copied = 'again', nil
  move_write(k, m)
  return {'AGAIN', '0', '0'}
end
if not m.copied then
  m.copied, m.signature, m.last = 0, signature, ''
end
local n, is_last, last = copy(m.last)
m.copied, m.last = m.copied + n, last
if is_last then
  switch()
  move_end(k, m, m.copied > 0)
  return {'DONE', digits(n), digits(m.copied)}
end
move_write(k, m)
return {'COPIED', digits(n), digits(m.copied)}
