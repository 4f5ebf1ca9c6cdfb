--- @include clock
--- errors_add(errors, id, at, outcome, text, s, worker, facts): what became of a run, one
-- line: "ms outcome =n:NUMBER;worker:ID;FACTS text". The newest ten, 8 KiB at most; text
-- is one line, the client escapes it. Without a state s it was no run, and nothing stands
-- before the text; so were all lines once. facts: one word, may be empty.
local ERRORS_LINES, ERRORS_BYTES, ERRORS_TEXT, ERRORS_FACTS = 10, 8192, 1024, 300

local function errors_put(errors, id, line, once)
  local lines = {}
  for old in string.gmatch(redis.call('HGET', errors, id) or '', '[^\n]+') do
    lines[#lines + 1] = old
  end
  if once and #lines > 0
     and string.match(lines[#lines], '^%d+ (%S+)') == string.match(line, '^%d+ (%S+)') then
    lines[#lines] = nil
  end
  lines[#lines + 1] = line
  local first, bytes = #lines, #line
  while first > 1 and #lines - first + 2 <= ERRORS_LINES
        and bytes + #lines[first - 1] + 1 <= ERRORS_BYTES do
    first = first - 1
    bytes = bytes + #lines[first] + 1
  end
  redis.call('HSET', errors, id, table.concat(lines, '\n', first))
end

local function errors_line(at, outcome, text, s, worker, facts)
  text = string.gsub(string.sub(text, 1, ERRORS_TEXT), '%c', ' ')
  if s then
    facts = string.gsub(string.sub(facts or '', 1, ERRORS_FACTS), '[%c ]', '_')
    text = '=n:' .. s.deliveries .. ';worker:' .. worker
      .. (facts ~= '' and ';' or '') .. facts .. ' ' .. text
  end
  return digits(at) .. ' ' .. outcome .. ' ' .. text
end

local function errors_add(errors, id, ...)
  errors_put(errors, id, errors_line(...), false)
end

-- errors_add_once(...): in place of the last line if that tells of the same outcome, so
-- that what happens every few seconds does not push out what happened before.
local function errors_add_once(errors, id, ...)
  errors_put(errors, id, errors_line(...), true)
end
