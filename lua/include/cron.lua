--- Entries: jobs that recur. One field of the hash `cron` each, readable in redis-cli:
--   rev due flag last at fired skipped waits
--   spec=... zone=... and other options
--   type and options of its jobs, as in a record without the time
--   payload
-- rev: changes with the definition and never comes again. due: ms of the next tick, - if there is none. flag: p
-- while it is paused. last: the end of the last job's id; at: when that was made. waits: the
-- tick that waits for the end of the job before it, or -. The field with the empty name is
-- the version of the whole: "changes ms".
--- @include clock

local CRON_LINE = '^(%d+) (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%S+)\n(.*)$'

-- nil: no such entry, or nothing that can be read as one.
local function cron_read(cron, name)
  local e = {}
  e.rev, e.due, e.flag, e.last, e.at, e.fired, e.skipped, e.waits, e.def =
    string.match(redis.call('HGET', cron, name) or '', CRON_LINE)
  return e.rev and e or nil
end

local function cron_write(cron, name, e)
  redis.call('HSET', cron, name, table.concat({e.rev, e.due, e.flag, e.last, e.at,
    digits(e.fired), digits(e.skipped), e.waits}, ' ') .. '\n' .. e.def)
end

-- An option of the definition, as it is written (encoded); nil if it is not there.
local function cron_option(def, option)
  return string.match(' ' .. string.match(def, '^[^\n]*'), ' ' .. option .. '=(%S+)')
end

-- cron_changed(cron, due, now): schedulers read the entries again; the leader at once.
local function cron_changed(cron, due, now)
  local n = tonumber(string.match(redis.call('HGET', cron, '') or '0', '^%d+')) or 0
  redis.call('HSET', cron, '', digits(n + 1) .. ' ' .. digits(now))
  if redis.call('EXISTS', due) == 0 then
    redis.call('LPUSH', due, '1')
  end
end
