--- The state of a job: what changes from its first delivery to its end.
--   token worker flag unique keep deliveries attempts lost interrupted snoozes
--   started max_deliveries|progress
-- Separated by blanks, so a person can read it in redis-cli. flag is 'c' once the
-- job was cancelled, else '-'. unique and keep are what its end needs.
local DELIVERIES_MAX = '3'
local STATE_HELD = '^(%S+) (%S+) '
local STATE_END = '^%S+ %S+ (%S+) (%S+) (%d+) '
local STATE_ALL = '^(%S+) (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)|(.*)$'

local function state_read(text)
  local s = {}
  s.token, s.worker, s.flag, s.unique, s.keep, s.deliveries, s.attempts, s.lost,
    s.interrupted, s.snoozes, s.started, s.max_deliveries, s.progress =
    string.match(text, STATE_ALL)
  return s.token and s or nil
end

local function state_text(s)
  return table.concat({s.token, s.worker, s.flag, s.unique, s.keep, s.deliveries,
    s.attempts, s.lost, s.interrupted, s.snoozes, s.started, s.max_deliveries}, ' ')
    .. '|' .. s.progress
end

-- held_word(text, score, token, worker): nil if this delivery still owns its job.
-- GONE: no such job. STALE: somebody else's. ANSWERED: it gave its answer before,
-- the repeat of a call whose reply was lost. None may change anything.
local function held_word(text, score, token, worker)
  if not text then
    return 'GONE'
  end
  local t, w = string.match(text, STATE_HELD)
  if t ~= token or w ~= worker then
    return 'STALE'
  end
  if not score then
    return 'ANSWERED'
  end
  return nil
end
