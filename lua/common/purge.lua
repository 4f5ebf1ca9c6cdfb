--- purge: removes dead jobs for good.
--
-- @flags allow-oom
-- @transition dead -> none
-- @key dead ZSET id -> time of death, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key unique HASH unique key -> id that holds it
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg limit without items: the oldest dead ones, at most so many
-- @arg before and that died not after this time, ms; empty: any
-- @item id the job's id
-- @returns OK removed, but for the items in the notes
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @answer GONE it is not dead; nothing changed
-- @cost O(jobs * log dead)
--
-- Reply: word, how many were removed, then position, word, detail of the others.
--- @include choose_dead
--- @include dead
--- @include ledger
--- @include unique
--- @include remove
--- @include engines
--- @include touch

local k = {dead = dead, stats = stats, jobs = jobs, state = state, results = results, errors = errors, log = log, }

-- Decide.
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, dead)
if word then
  return {word}
end
touch('HLEN', jobs, state, results, errors, log, unique, stats)
local ids, notes = choose_dead(dead, ARGV, ITEM_FIRST, limit, before, 0)

-- Apply.
if #ids > 0 then
  dead_out(k, ids)
  unique_free_all(unique, state, ids)
  remove_jobs(k, ids)
  ledger_add(stats, 'purged', #ids)
end
return {'OK', digits(#ids), unpack(notes)}
