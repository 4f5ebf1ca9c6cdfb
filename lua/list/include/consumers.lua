--- A list has no consumers.
local function consumers_idle()
  return nil
end

local function consumers_remove()
end
