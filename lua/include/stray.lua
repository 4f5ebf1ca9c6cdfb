--- What became of a stream by hand: entries that nobody finds, or nobody gets. Seen in one
-- step, so it is certain:
--   unindexed     the id of its job leads to another entry, or to none
--   passed_over   the group went past it, and nobody has it
--   orphan_index  an id that leads to no entry of that job
--- @include entry
--- @include group

local function is_after(a, b)
  local ms, seq = string.match(a, '^(%d+)%-(%d+)$')
  local other_ms, other_seq = string.match(b, '^(%d+)%-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(seq) > tonumber(other_seq)
end

local function stray_fault(k, entry, id)
  local group, named = group_info(k), redis.call('HGET', k.ids, id)
  if named and named ~= entry or not named and id ~= entry then
    return 'unindexed'
  elseif group and not is_after(entry, group['last-delivered-id'])
      and #pending_range(k, '', entry, entry, 1) == 0 then
    return 'passed_over'
  end
  return ''
end

-- stray_entries(k, cursor, limit): the next cursor, and {id, fault, entry} of each entry; ''
-- is no fault. Records are read whole with their entries: a slice ends after 256 KiB.
local function stray_entries(k, cursor, limit)
  local at, count, bytes, list, some = cursor, 1, 0, {}, nil
  repeat
    some = redis.call('XRANGE', k.stream, '(' .. at, '+', 'COUNT', math.min(count, limit - #list))
    for _, found in ipairs(some) do
      local record, id = entry_job(found[1], found[2])
      list[#list + 1] = {id, stray_fault(k, found[1], id), found[1]}
      at, bytes = found[1], bytes + #record
    end
    count = bytes > 16 * count * 1024 and 1 or 2 * count
  until #some == 0 or #list >= tonumber(limit) or bytes > 262144
  return #some > 0 and at or '0', list
end

-- stray_ids(k, cursor, limit): the same of `ids`, faults alone. Records are read for it and
-- may be large: few at once.
local function stray_ids(k, cursor, limit)
  local slice, list = redis.call('HSCAN', k.ids, cursor, 'COUNT', math.ceil(limit / 8)), {}
  for i = 1, #slice[2], 2 do
    if not entry_of(k, slice[2][i]) then
      list[#list + 1] = {slice[2][i], 'orphan_index', slice[2][i + 1]}
    end
    k.entries = nil
  end
  return slice[1], list
end
