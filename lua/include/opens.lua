--- opens(k): what scripts that move jobs ask first: is it this engine's queue? nil, or the word
-- to answer. k.paused is known after that.
--- @include engine

local function opens(k)
  local q = redis.call('HMGET', k.config, 'engine', 'paused')
  k.paused = q[2]
  return engine_word(q[1], k.stats, k.jobs, k.ready or k.stream)
end
