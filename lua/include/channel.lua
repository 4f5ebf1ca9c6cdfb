--- The numbered calls of a producer: repeats and gaps.

-- channel_word(saved, number, first, count): has this call been here before?
-- APPLY, or GAP (apply; calls in between were rolled back), or BEFORE (the same
-- call again), CLASH (same number, other ids), LATE (an older number).
-- BEFORE also answers the notes of the saved answer.
local function channel_word(saved, number, first, count)
  local n = string.match(saved or '', '^(%d+) ')
  if not n then
    return 'APPLY'
  end
  local step = number - n
  if step == 0 then
    local had, notes, id = string.match(saved, '^%d+ %d+ (%d+) (%S+) ([^\n]*)')
    if tonumber(had) == count and id == first then
      return 'BEFORE', notes
    end
    return 'CLASH'
  end
  if step < 0 then
    return 'LATE'
  end
  return step == 1 and 'APPLY' or 'GAP'
end
