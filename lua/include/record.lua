--- record_unique(record): what a record says about its unique key: "KEY", "KEY=LETTERS"
-- as in unique.lua, or '-'.
local function unique_word(header)
  local key = string.match(header, ' unique=(%S+)')
  local states = key and string.match(header, ' unique_states=(%S+)')
  if not states then
    return key or '-'
  end
  local letters = (string.find(states, 'processing', 1, true) and '' or 's')
    .. (string.find(states, 'dead', 1, true) and 'x' or '')
    .. (string.find(states, 'done', 1, true) and 'k' or '')
  return letters == '' and key or key .. '=' .. letters
end

local function record_unique(record)
  return unique_word(string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1))
end
