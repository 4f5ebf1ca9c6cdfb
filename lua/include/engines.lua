--- engine_known(engine, ...): as engine_word(), for a script that touches only what every
-- engine stores alike, or looks at the structures of all of them.
local ENGINES = {list = true, stream = true}

local function engine_known(engine, ...)
  if engine then
    return not ENGINES[engine] and 'ENGINE' or nil
  end
  return redis.call('EXISTS', ...) > 0 and 'CORRUPT' or 'NOQUEUE'
end
