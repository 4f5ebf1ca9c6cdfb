--- due_time(spec, now, later): "+250" after now, "@1796000000000" at, '' at once.
-- nil when it is due already.
local function due_time(spec, now, later)
  if spec == '' then
    return nil
  end
  local at = tonumber(string.sub(spec, 2))
  if string.sub(spec, 1, 1) == '+' then
    return at > 0 and later + at or nil
  end
  return at > now and at or nil
end
