--- engine_word(engine, ...): nil if the queue is stored by the script's engine.
-- ENGINE: by another one. NOQUEUE: nobody made it yet. CORRUPT: its config is
-- gone (evicted, deleted by hand) while the given keys still hold jobs; making it
-- again would silently start a second queue of the same name.
local function engine_word(engine, ...)
  if engine == ENGINE then
    return nil
  end
  if engine then
    return 'ENGINE'
  end
  if redis.call('EXISTS', ...) > 0 then
    return 'CORRUPT'
  end
  return 'NOQUEUE'
end
