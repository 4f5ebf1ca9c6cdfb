--- cancel: calls jobs off: at once while they wait, by a flag while they run.
--
-- @flags allow-oom
-- @transition ready -> cancelled
-- @transition delayed -> cancelled
-- @transition processing -> processing
-- @key ready LIST ids that wait, taken from the right
-- @key tombs HASH ids cancelled while they stand in ready
-- @key processing ZSET id -> end of its lease, ms
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key stats HASH the ledger's counters
-- @key unique HASH unique key -> id that holds it
-- @key config HASH engine, limits, paused
-- @item id the job's id
-- @returns OK one answer an item follows
-- @returns ENGINE the queue is stored by another engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer READY it waited in ready; cancelled
-- @answer DELAYED it waited in delayed; cancelled
-- @answer FLAGGED it runs; its next answer ends it; detail: the worker
-- @answer DEAD it was given up before; nothing changed
-- @answer DONE it finished before; nothing changed
-- @answer GONE no such job; nothing changed
-- @answer BROKEN a record without a place in a queue that holds nothing; nothing changed
-- @cost O(jobs)
--
-- A waiting id keeps its place in the list and gets a tombstone: no O(N) removal.
-- Reply: word, then answer, detail of every item.
--- @include clock
--- @include state
--- @include unique
--- @include record
--- @include remove
--- @include ledger
--- @include tombs
--- @include engine
--- @include touch

local k = {jobs = jobs, state = state, results = results, errors = errors, log = log, stats = stats, }

-- Decide.
local word = engine_word(redis.call('HGET', config, 'engine'), stats, jobs, ready)
if word then
  return {word}
end
touch('HLEN', tombs, jobs, state, results, errors, log, stats, unique)
touch('ZCARD', processing, delayed, dead, kept)
local left = redis.call('LLEN', ready) - redis.call('HLEN', tombs)
local plan, seen = {}, {}
for i = ITEM_FIRST, #ARGV do
  local id = ARGV[i]
  local text = redis.call('HGET', state, id)
  local s = text and state_read(text)
  local p = {id = id, word = 'GONE', detail = '', state = s}
  if redis.call('ZSCORE', processing, id) then
    p.word, p.detail = 'FLAGGED', s and s.worker or '-'
  elseif redis.call('ZSCORE', delayed, id) then
    p.word = 'DELAYED'
  elseif redis.call('ZSCORE', dead, id) then
    p.word = 'DEAD'
  elseif redis.call('ZSCORE', kept, id) then
    p.word = 'DONE'
  elseif redis.call('HEXISTS', jobs, id) == 1 and not seen[id] then
    p.word = left > 0 and 'READY' or 'BROKEN'
    left = left - 1
  end
  if seen[id] and p.word ~= 'FLAGGED' then
    p.word = 'GONE'
  end
  seen[id] = true
  plan[#plan + 1] = p
end

-- While a job waits its record names its unique key: the state may be older than that.
local function key_of(p)
  local record = redis.call('HGET', jobs, p.id)
  if not record then
    return p.state and p.state.unique or '-'
  end
  return record_unique(record)
end

-- Apply.
local reply, waited, moved = {'OK'}, {READY = 0, DELAYED = 0}, {}
for _, p in ipairs(plan) do
  reply[#reply + 1] = p.word
  reply[#reply + 1] = p.detail
  if p.word == 'FLAGGED' and p.state and p.state.flag ~= 'c' then
    p.state.flag = 'c'
    redis.call('HSET', state, p.id, state_text(p.state))
  elseif waited[p.word] then
    waited[p.word] = waited[p.word] + 1
    moved[#moved + 1] = p.id
    unique_free(unique, key_of(p), p.id)
    if p.word == 'READY' then
      redis.call('HSET', tombs, p.id, '1')
    else
      redis.call('ZREM', delayed, p.id)
    end
  end
end
remove_jobs(k, moved)
ledger_add(stats, 'cancelled_ready', waited.READY)
ledger_add(stats, 'cancelled_delayed', waited.DELAYED)
if waited.READY > 0 then
  tombs_pop({ready = ready, tombs = tombs, stats = stats})
end
return reply
