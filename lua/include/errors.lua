--- @include clock
--- errors_add(errors, id, at, outcome, text): one line per attempt that did not
-- succeed: "ms outcome text". The newest ten, 4 KiB at most; text is one line, the
-- client escapes it.
local ERRORS_LINES, ERRORS_BYTES, ERRORS_TEXT = 10, 4096, 1024

local function errors_add(errors, id, at, outcome, text)
  local lines = {}
  for line in string.gmatch(redis.call('HGET', errors, id) or '', '[^\n]+') do
    lines[#lines + 1] = line
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
