--- What every engine's reserve asks about a job, and does with one that is not handed out.
--- @include clock
--- @include ledger
--- @include held
--- @include place
--- @include unique_next
--- @include record
--- @include errors
--- @include dead
--- @include due
--- @include aside
--- @include ended
--- @include remove

local SHELVE_MS = 5000
local HEADER = '^%d+ (%S+) %d+([^\n]*)\n'

-- The options in a record's header that decide about its end.
local function header_options(record, options, default_keep)
  local expires = string.match(options, ' expires=(%d+)')
  return string.match(options, ' keep=(%d+)') or default_keep,
    unique_word(options),
    string.match(options, ' max_deliveries=(%d+)') or DELIVERIES_MAX,
    expires and string.match(record, '^%d+ %S+ (%d+)') + expires
end

-- A job whose body is gone: dead, counted, with a stub in place of its record. If its id
-- lives again as another job, the stub gets a name of its own.
local function lose_body(k, id, text, now, is_copy)
  if is_copy then
    id, text = 'lost-' .. redis.call('HINCRBY', k.stats, 'tokens', 1), false
  else
    order_leave(k, id)
  end
  if text then
    local word = string.match(text, '^%S+ %S+ %S+ (%S+) ') or '-'
    unique_free(k.unique, word, id)
    unique_next(k, word, id)
  end
  redis.call('HSET', k.jobs, id, '1 - ' .. digits(now) .. ' lost_body=1\n')
  redis.call('ZADD', k.dead, now, id)
  errors_add(k.errors, id, now, 'lost_body', 'the stored job was gone')
  dead_in(k, {id})
end

-- The list of what the worker's last call got, if this is the repeat of that call. r.handed:
-- that was an offer, and a job was handed to it.
local function claims_saved(k, r)
  local saved = redis.call('HGET', k.claims, r.worker)
  local call, mark, list = string.match(saved or '', '^(%d+) %d+ %d+ ?(%a*)[^\n]*\n(.*)$')
  r.handed = mark == 'handed'
  return call == r.call and list or nil
end

-- Apply: the list of what this call got. r.mark: ' handed', if that is told by the marker.
local function claims_write(k, r, now, claims)
  redis.call('HSET', k.claims, r.worker,
             r.call .. ' ' .. digits(now) .. ' ' .. digits(r.lease) .. (r.mark or '') .. '\n' .. claims)
end

-- Adds to reply what of that list the worker still holds. It knows of it now, so nobody else
-- may give it back. Its lease begins anew: that of the call before may be nearly over, and the
-- worker counts from its repeat.
--- @rare claims_repeat
local function claims_repeat(k, r, list, now, reply)
  local ids, tokens, kept, their = {}, {}, {}, {}
  for id, token in string.gmatch(list, '([^\t\n]+)\t(%S+)\t%d\n') do
    ids[#ids + 1], tokens[#tokens + 1] = id, token
  end
  if #ids == 0 then
    return
  end
  local texts, words = held_look(k, ids, tokens, r.worker)
  for i = 1, #ids do
    if not words[i] then
      kept[#kept + 1], their[#kept + 1] = ids[i], texts[i]
      reply[#reply + 1] = ids[i]
      reply[#reply + 1] = texts[i]
      reply[#reply + 1] = record_of(k, ids[i]) or ''
    end
  end
  touch('LLEN', k.wake)
  if r.handed then
    claims_write(k, r, now, list)
  end
  if #kept > 0 then
    held_renew(k, kept, their, now, r.lease)
  end
end

-- Does this worker run the type? What was found is kept in r.knows.
local function type_known(r, kind)
  local known = r.knows[kind]
  if known == nil then
    local found = string.find(r.types, ' ' .. kind .. ' ', 1, true) ~= nil
    known = found ~= (string.sub(r.types, 1, 1) == '!')
    r.knows[kind] = known
  end
  return known
end

-- One job that has its record: taken, too late, not for this worker, or a stub.
local function choose_one(k, r, c, id, text, record, now)
  local kind, options = string.match(record, HEADER)
  local keep, key, max, expires = r.keep, '-', DELIVERIES_MAX, nil
  if options and options ~= '' then
    keep, key, max, expires = header_options(record, options, r.keep)
  end
  if kind == '-' and options == ' lost_body=1' then -- perhaps of one that stands elsewhere
    c.lost[#c.lost + 1] = {id, text, aside_of(k, id)}
    return true
  end
  if expires and not text and expires <= now then
    c.late[#c.late + 1] = {id, key}
    return true
  end
  if r.types ~= '' and kind and not type_known(r, kind) then
    c.shelved[#c.shelved + 1] = {id, kind}
    return true
  end
  local n = c.n + 1
  c.n = n
  c.bytes = c.bytes + #record
  c.ids[n], c.texts[n], c.records[n] = id, text, record
  c.opens = c.opens or string.find(key, '^[^=]+=%a*s')
  c.ends[n] = (options and options ~= '') and {keep, key, max} or false
  return false
end

-- Apply: those that are next and have no body, or stand there for the second time.
local function reserve_lose(k, c, now)
  for _, l in ipairs(c.lost) do
    lose_body(k, l[1], l[2], now, l[3])
  end
  ledger_add(k.stats, 'lost_body_ready', #c.lost)
end

-- Apply: what is too late to start is over.
local function reserve_expire(k, c)
  local late = {}
  for i, l in ipairs(c.late) do
    late[i] = l[1]
    ended(k, l[1], 'expired', '')
    unique_free(k.unique, l[2], l[1])
    unique_next(k, l[2], l[1])
  end
  remove_jobs(k, late)
  ledger_add(k.stats, 'expired_ready', #late)
end

-- Apply: what this worker cannot run waits a moment for one that can.
local function reserve_shelve(k, r, c, now, later)
  local n = #c.shelved
  if n == 0 then
    return
  end
  local places = {}
  for i, l in ipairs(c.shelved) do
    places[2 * i - 1], places[2 * i] = later + SHELVE_MS, l[1]
    errors_add_once(k.errors, l[1], now, 'no_handler',
                    'no handler for type ' .. l[2] .. ' on worker ' .. r.worker)
  end
  delayed_add(k.delayed, k.due, places)
  ledger_add(k.stats, 'shelved', n)
  redis.call('HSET', k.stats, 'shelved_last', digits(now) .. ' ' .. c.shelved[n][2])
end

local function reserve_word(r, c)
  if r.paused then
    return 'PAUSED'
  end
  if c.n == 0 and not c.more then
    return r.free + r.ahead == 0 and 'OK' or #c.shelved > 0 and 'SHELVED' or 'EMPTY'
  end
  return c.more and 'MORE' or 'OK'
end
