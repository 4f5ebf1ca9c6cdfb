--- What jobs printed, in the hash `log`. Its fields:
--   id                     a line for each run (delivery) that is kept, oldest first:
--                          "number token seq started taken size end open|offset,offset"
--   id TAB number TAB offset   a piece of that run's output, from this offset on
--   TAB seq                "id TAB number": in which order the runs began to print
-- taken: how much of the sender's stream has come, so that a repeat is known. size: what
-- is stored; end: what was stored ever. open: 1 until the sender said that it is all.
-- Ids hold no control characters, so a TAB cannot be part of one.
local LOG_LINE = '^(%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d)|(.*)$'

local function log_runs(text)
  local runs = {}
  for line in string.gmatch(text or '', '[^\n]+') do
    local r, offsets = {pieces = {}}, nil
    r.number, r.token, r.seq, r.started, r.taken, r.size, r.last, r.open, offsets =
      string.match(line, LOG_LINE)
    for offset in string.gmatch(offsets or '', '%d+') do
      r.pieces[#r.pieces + 1] = offset
    end
    if r.number then
      runs[#runs + 1] = r
    end
  end
  return runs
end

-- The fields of a run beside its line in the index.
local function log_fields(id, r)
  local fields = {'\t' .. r.seq}
  for i, offset in ipairs(r.pieces) do
    fields[i + 1] = id .. '\t' .. r.number .. '\t' .. offset
  end
  return fields
end

-- log_remove(log, stats, ids): all that these jobs printed.
--- @rare log_remove
local function log_remove(log, stats, ids)
  local found, bytes = redis.call('HMGET', log, unpack(ids)), 0
  for i = 1, #ids do
    if found[i] then
      redis.call('HDEL', log, ids[i])
      for _, r in ipairs(log_runs(found[i])) do
        redis.call('HDEL', log, unpack(log_fields(ids[i], r)))
        bytes = bytes + r.size
      end
    end
  end
  if bytes > 0 then
    redis.call('HINCRBY', stats, 'log_bytes', -bytes)
  end
end
