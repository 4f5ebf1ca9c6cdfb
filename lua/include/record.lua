--- record_unique(record): the unique key that a record names, '-' if none.
local function record_unique(record)
  local header = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  return string.match(header, ' unique=(%S+)') or '-'
end
