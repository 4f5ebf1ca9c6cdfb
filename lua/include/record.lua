--- record_unique(record): what a record says about its keys: its unique key as in
-- unique.lua, "KEY", "KEY=LETTERS" or '-'; of an ordered job "=ORDER_KEY" stands behind
-- that, with a "=" before it also if there are no letters: "-==ORDER_KEY".
local function unique_word(header)
  local key = string.match(header, ' unique=(%S+)')
  local order = string.match(header, ' order=(%S+)')
  local states = key and string.match(header, ' unique_states=(%S+)')
  if not states then
    key = key or '-'
    return order and key .. '==' .. order or key
  end
  local letters = (string.find(states, 'processing', 1, true) and '' or 's')
    .. (string.find(states, 'dead', 1, true) and 'x' or '')
    .. (string.find(states, 'done', 1, true) and 'k' or '')
  if order then
    return key .. '=' .. letters .. '=' .. order
  end
  return letters == '' and key or key .. '=' .. letters
end

local function record_unique(record)
  return unique_word(string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1))
end
