--- What a queue's config says for jobs that do not say it themselves: retry, backoff, keep_progress.
-- It stands in the record behind a lone "+", so that a record still tells what its producer
-- wrote.

-- defaults_of(retry, backoff, keep_progress): options as in a header; nil: none.
local function defaults_of(retry, backoff, keep_progress)
  if not retry and not backoff and not keep_progress then
    return nil
  end
  return (retry and ' retry=' .. retry or '') .. (backoff and ' backoff=' .. backoff or '')
    .. (keep_progress and ' keep_progress=' .. keep_progress or '')
end

-- defaults_add(tail, defaults): the options that the tail does not name.
--- @rare defaults_add
local function defaults_add(tail, defaults)
  local stop = string.find(tail, '\n', 1, true)
  local header, extra = string.sub(tail, 1, stop - 1), ''
  for word, name in string.gmatch(defaults, '(([^ =]+=)%S+)') do
    if not string.find(header, ' ' .. name, 1, true) then
      extra = extra .. ' ' .. word
    end
  end
  return extra == '' and tail or header .. ' +' .. extra .. string.sub(tail, stop)
end

-- defaults_cut(tail): the tail as the producer wrote it.
local function defaults_cut(tail)
  local stop = string.find(tail, '\n', 1, true) or 0
  local plus = string.find(string.sub(tail, 1, stop), ' + ', 1, true)
  return plus and string.sub(tail, 1, plus - 1) .. string.sub(tail, stop) or tail
end
