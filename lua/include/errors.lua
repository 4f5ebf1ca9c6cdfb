--- @include clock
--- errors_add(errors, id, at, outcome, text): one line per attempt that did not
-- succeed: "ms outcome text". The newest ten, 4 KiB at most; text is one line, the
-- client escapes it.
local ERRORS_LINES, ERRORS_BYTES, ERRORS_TEXT = 10, 4096, 1024

local function errors_put(errors, id, at, outcome, text, once)
  local lines = {}
  for line in string.gmatch(redis.call('HGET', errors, id) or '', '[^\n]+') do
    lines[#lines + 1] = line
  end
  if once and #lines > 0 and string.match(lines[#lines], '^%d+ (%S+)') == outcome then
    lines[#lines] = nil
  end
  text = string.gsub(string.sub(text, 1, ERRORS_TEXT), '%c', ' ')
  lines[#lines + 1] = digits(at) .. ' ' .. outcome .. ' ' .. text
  local first, bytes = #lines, #lines[#lines]
  while first > 1 and #lines - first + 2 <= ERRORS_LINES
        and bytes + #lines[first - 1] + 1 <= ERRORS_BYTES do
    first = first - 1
    bytes = bytes + #lines[first] + 1
  end
  redis.call('HSET', errors, id, table.concat(lines, '\n', first))
end

local function errors_add(errors, id, at, outcome, text)
  errors_put(errors, id, at, outcome, text, false)
end

-- errors_add_once(...): in place of the last line if that tells of the same outcome, so
-- that what happens every few seconds does not push out what happened before.
local function errors_add_once(errors, id, at, outcome, text)
  errors_put(errors, id, at, outcome, text, true)
end
