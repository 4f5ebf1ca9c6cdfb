--- log: a worker stores what its jobs print.
--
-- @transition processing -> processing
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
-- @key stream:ids HASH id -> its entry, where they differ
-- @key state HASH id -> what changes
-- @key log HASH what jobs printed
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg worker the worker's id
-- @arg head_max so many bytes of a run's begin are kept
-- @arg tail_max and so many of its end
-- @arg piece_max a piece is filled up to so many bytes
-- @arg runs_max so many runs of a job are kept
-- @arg bytes_max of the whole queue, 0: no bound; the runs that began first go first
-- @item id the job's id
-- @item token of the delivery
-- @item at where these bytes stand in the run's stream
-- @item last 1: there will be no more
-- @item bytes whole records, see docs/keys.md
-- @returns OK stored, but for the items in the notes
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer STALE another delivery owns the job; nothing changed
-- @answer GONE no such job; nothing changed
-- @cost O(items)
--
-- A full server refuses it: what jobs print is not worth the room that draining needs.
-- A delivery that gave its answer may still store its last lines until the next one
-- begins. A repeat of the call stores nothing twice.
-- Reply: word, then position, word of each item that was not stored.
--- @include clock
--- @include held
--- @include log
--- @include ledger
--- @include engine
--- @include touch

-- Decide.
local q = redis.call('HMGET', config, 'engine', 'log_bytes_max')
local word = engine_word(q[1], k.stats, k.state, k.processing or k.stream)
if word then
  return {word}
end
touch('HLEN', log, stats)
local plan, notes, jobs, tokens = {}, {}, {}, {}
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  jobs[#jobs + 1], tokens[#tokens + 1] = ARGV[i], ARGV[i + 1]
end
local texts, words = {}, {}
if #jobs > 0 then
  texts, words = held_look(k, jobs, tokens, worker)
end
for i = 1, #jobs do
  if words[i] and words[i] ~= 'ANSWERED' then
    notes[#notes + 1] = digits(i - 1)
    notes[#notes + 1] = words[i]
  else
    plan[#plan + 1] = {at = ITEM_FIRST + (i - 1) * ITEM_WORDS, state = state_read(texts[i])}
  end
end

local head, tail, limit = tonumber(head_max), tonumber(tail_max), tonumber(q[2] or bytes_max)
local counts = redis.call('HMGET', stats, 'log_bytes', 'log_next', 'log_head')
local total, next_seq, first_seq = tonumber(counts[1] or '0'), tonumber(counts[2] or '0'),
  tonumber(counts[3] or '0')

local function drop_run(id, runs, i)
  redis.call('HDEL', log, unpack(log_fields(id, runs[i])))
  total = total - runs[i].size
  table.remove(runs, i)
end

local function put_runs(id, runs)
  local lines = {}
  for i, r in ipairs(runs) do
    lines[i] = table.concat({r.number, r.token, r.seq, r.started, r.taken, r.size, r.last,
      r.open}, ' ') .. '|' .. table.concat(r.pieces, ',')
  end
  if #lines > 0 then
    redis.call('HSET', log, id, table.concat(lines, '\n'))
  else
    redis.call('HDEL', log, id)
  end
end

-- The run of this delivery: the last one, or a new one.
local function run_of(id, runs, s)
  for i = #runs, 1, -1 do
    if runs[i].number == s.deliveries then
      if i == #runs and runs[i].token == s.token then
        return runs[i]
      end
      drop_run(id, runs, i) -- of a state that is gone
    end
  end
  if #runs >= tonumber(runs_max) then
    drop_run(id, runs, 1)
  end
  next_seq = next_seq + 1
  local r = {number = s.deliveries, token = s.token, seq = digits(next_seq),
    started = s.started, taken = '0', size = '0', last = '0', open = '1', pieces = {}}
  runs[#runs + 1] = r
  redis.call('HSET', log, '\t' .. r.seq, id .. '\t' .. r.number)
  return r
end

local function add_piece(id, r, bytes)
  local from, last = tonumber(r.pieces[#r.pieces]), tonumber(r.last)
  local prefix = id .. '\t' .. r.number .. '\t'
  if from and last - from < tonumber(piece_max) and (from >= head or last < head) then
    local old = redis.call('HGET', log, prefix .. digits(from)) or ''
    redis.call('HSET', log, prefix .. digits(from), old .. bytes)
  else
    r.pieces[#r.pieces + 1] = r.last
    redis.call('HSET', log, prefix .. r.last, bytes)
  end
  r.last = digits(last + #bytes)
  r.size = digits(r.size + #bytes)
  total = total + #bytes
end

-- Between head and tail the oldest pieces go that the tail can be whole without.
local function trim_tail(id, r)
  local at = 1
  while at <= #r.pieces and tonumber(r.pieces[at]) < head do
    at = at + 1
  end
  while at < #r.pieces and r.last - r.pieces[at + 1] >= tail do
    local field = id .. '\t' .. r.number .. '\t' .. r.pieces[at]
    local size = redis.call('HSTRLEN', log, field)
    redis.call('HDEL', log, field)
    r.size = digits(r.size - size)
    total = total - size
    table.remove(r.pieces, at)
  end
end

-- Apply.
for _, p in ipairs(plan) do
  local id, at, bytes = ARGV[p.at], tonumber(ARGV[p.at + 2]), ARGV[p.at + 4]
  local runs = log_runs(redis.call('HGET', log, id))
  local r = run_of(id, runs, p.state)
  local taken = tonumber(r.taken)
  if at + #bytes > taken then
    r.taken = digits(at + #bytes)
    add_piece(id, r, string.sub(bytes, math.max(0, taken - at) + 1))
    trim_tail(id, r)
  end
  if ARGV[p.at + 3] == '1' then
    r.open = '0'
  end
  put_runs(id, runs)
end

-- The queue's bound. Numbers of runs that are gone are passed by.
local dropped, steps = 0, #plan > 0 and 64 + #plan or 0
while first_seq < next_seq and steps > 0 do
  local owner = redis.call('HGET', log, '\t' .. digits(first_seq + 1))
  if owner and (total <= limit or limit == 0) then
    break
  end
  if owner then
    local id, number = string.match(owner, '^(.*)\t(%d+)$')
    local runs = log_runs(redis.call('HGET', log, id))
    for i = #runs, 1, -1 do
      if runs[i].number == number then
        drop_run(id, runs, i)
        dropped = dropped + 1
      end
    end
    put_runs(id, runs)
  end
  first_seq, steps = first_seq + 1, steps - 1
end
if #plan > 0 then
  redis.call('HSET', stats, 'log_bytes', digits(total), 'log_next', digits(next_seq),
             'log_head', digits(first_seq))
end
ledger_add(stats, 'log_dropped', dropped)
return {'OK', unpack(notes)}
