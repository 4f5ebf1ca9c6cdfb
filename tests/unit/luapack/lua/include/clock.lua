--- clock(given): the time, ms.
local function clock(given)
  return tonumber(given)
end
