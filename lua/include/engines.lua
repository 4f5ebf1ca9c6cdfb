--- engine_known(engine, ...): as engine_word(), for a script that touches only what every
-- engine stores alike, and so serves each of them, also while a queue moves from one to
-- the other.
local ENGINES = {list = true, stream = true}

local function engine_known(engine, ...)
  if engine then
    return not (ENGINES[engine] or string.find(engine, '^moving ')) and 'ENGINE' or nil
  end
  return redis.call('EXISTS', ...) > 0 and 'CORRUPT' or 'NOQUEUE'
end
