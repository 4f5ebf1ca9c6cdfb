--- inspect: all that is known of one job.
--
-- @flags no-writes
-- @key ready LIST list engine: ids that wait, taken from the right
-- @key tombs HASH list engine: ids cancelled while they stand in ready
-- @key processing ZSET list engine: id -> end of its lease, ms
-- @key stream STREAM stream engine: jobs that wait or run, one entry each
-- @key ids HASH stream engine: id -> entry, where they differ
-- @key claims HASH worker -> its last reserve
-- @key delayed ZSET id -> due time, ms
-- @key dead ZSET id -> time of death, ms
-- @key kept ZSET id -> when it is forgotten, ms
-- @key jobs HASH id -> record
-- @key state HASH id -> what changes
-- @key results HASH id -> result
-- @key progress HASH id -> last progress of a job that is over
-- @key errors HASH id -> last errors
-- @key log HASH id -> captured output
-- @key order HASH lines of the order keys
-- @key stats HASH the ledger's counters
-- @key config HASH engine, limits, paused
-- @arg now the test clock, ms; empty: the server's
-- @arg id the job's id
-- @arg bytes at most so many of the record and of the result
-- @returns OK found
-- @returns GONE no such job
-- @returns ENGINE the queue is stored by an unknown engine
-- @returns NOQUEUE nobody made this queue
-- @returns CORRUPT the config is gone, jobs are there
-- @cost O(1)
--
-- Reply: word, the server's time, place (ready, delayed, processing, dead, done),
-- score of that place, record, its full length, state, result, its full length,
-- errors, log, and the job before it in the line of its order key (empty: none). A job that runs for the first time on the stream engine has no state
-- stored: what is known of its delivery is said as if it had. Of a job that is over, and whose progress
-- is kept, that comes last: "until ended word text", also behind GONE and the time.
--- @include shown
--- @include engines
--- @include parked

local k = {ready = ready, tombs = tombs, processing = processing, stream = stream, ids = ids,
           claims = claims, delayed = delayed, dead = dead, kept = kept, jobs = jobs, state = state, order = order}
local now = clock(now_arg)
local word = engine_known(redis.call('HGET', config, 'engine'), stats, jobs, ready, stream)
if word then
  return {word}
end
local place, score, text = shown(k, id, now_arg)
local said = redis.call('HGET', progress, id) or ''
local till, ended_at = string.match(said, '^(%d+) (%d+) ')
if not till or tonumber(till) <= now then
  said = ''
end
if not place then
  return said == '' and {'GONE', digits(now)} or {'GONE', digits(now), said}
end
local _, _, keep = string.match(text, STATE_END)
if place ~= 'done' or not keep or ended_at ~= digits(score - keep) then
  said = '' -- of another job that had this id
end
local _, before = order_link(k, id)
local record, result = shown_record(k, id), redis.call('HGET', results, id) or ''
return {'OK', digits(now), place, score, string.sub(record, 1, bytes), digits(#record), text,
        string.sub(result, 1, bytes), digits(#result), redis.call('HGET', errors, id) or '',
        redis.call('HGET', log, id) or '', before or '', said ~= '' and said or nil}
