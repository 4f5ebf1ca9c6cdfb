--- The stream of a queue and its group. One entry for each job that waits or runs:
--   j RECORD [i ID]    i only where the job's id is not the entry's own
-- Pending of a worker: the job runs there. Pending of _front: it waits, and is next. Not
-- pending, and behind the last id that the group gave out: it waits for its turn.
--- @include clock

local GROUP, FRONT = 'workers', '_front'

-- group_info(k): what XINFO says of the group; false: there is no stream, or its group was
-- destroyed by hand. k.group remembers it; k.len is the stream's length where it is known, and
-- k.there that it is there.
local function group_info(k)
  if k.group == nil then
    k.group = false
    local there = k.there or k.len and k.len > 0 or redis.call('EXISTS', k.stream) == 1
    local groups = there and redis.call('XINFO', 'GROUPS', k.stream) or {}
    for _, flat in ipairs(groups) do
      local info = {}
      for i = 1, #flat, 2 do
        info[flat[i]] = flat[i + 1]
      end
      if info.name == GROUP then
        k.group = info
      end
    end
  end
  return k.group
end

-- group_again(k): the same after something changed.
local function group_again(k)
  k.group = nil
  return group_info(k)
end

-- group_make(k): makes the group, from the first entry on. Its generation goes into the
-- names of the consumers: who had something of one that was destroyed has it no more.
local function group_make(k)
  if not group_info(k) then
    redis.call('XGROUP', 'CREATE', k.stream, GROUP, '0', 'MKSTREAM')
    redis.call('HINCRBY', k.config, 'generation', 1)
    group_again(k)
  end
end

-- Redis lets no time of delivery lie in the future. Those of a test clock are stored so far
-- in the past, where no other is.
local TEST_PAST = 1000000000000

-- claim_time(now): what XCLAIM is told.
local function claim_time(now)
  return digits(clock_is_test() and now - TEST_PAST or now)
end

local function server_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- pending_range(k, test, from, to, count[, consumer]): entry, consumer, time of its delivery
-- or last renewal, deliveries, of each that is pending. Asked until no ms passed meanwhile,
-- so that the time is exact.
local function pending_range(k, _, ...)
  local found, at
  if not group_info(k) then
    return {}
  end
  for _ = 1, 5 do
    at = server_ms()
    found = redis.call('XPENDING', k.stream, GROUP, ...)
    if at == server_ms() then
      break
    end
  end
  for _, p in ipairs(found) do
    p[3] = at - p[3]
    if p[3] < TEST_PAST then
      p[3] = p[3] + TEST_PAST
    end
  end
  return found
end

-- A worker's name in the group: after its name "#" and a number when the group is not the
-- first one of this queue (one that was made again counts deliveries from 1 once more).
local function consumer_parts(consumer)
  local worker, generation = string.match(consumer, '^(.*)#(%d+)$')
  return worker or consumer, generation
end

local function consumer_name(worker, generation)
  return generation and worker .. '#' .. generation or worker
end

-- The token of a delivery.
local function entry_token(entry, count, generation)
  return entry .. '.' .. digits(count) .. (generation and '.' .. generation or '')
end

-- token_parts(token): entry, count, generation (nil: the first), and the two numbers of the
-- entry; nothing if it is no token. Redis takes no longer numbers.
local function token_parts(token)
  local entry, ms, seq, count, generation =
    string.match(token, '^((%d+)%-(%d+))%.(%d+)%.?(%d*)$')
  if entry and #ms < 20 and #seq < 20 then
    return entry, tonumber(count), generation ~= '' and generation or nil, tonumber(ms), tonumber(seq)
  end
end
