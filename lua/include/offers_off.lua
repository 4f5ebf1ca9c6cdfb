--- Offers are of no use while others wait for the markers who make none: for a while, when
-- one of those took a marker that brought another worker a job, none is taken.

local OFFERS_OFF_MS = 30000

-- One that ends later was made before the clock was set back.
local function offers_are_off(k, now)
  local untl = tonumber(redis.call('HGET', k.stats, 'offers_off') or 0)
  return now < untl and untl <= now + OFFERS_OFF_MS
end

local function offers_put_off(k, now)
  redis.call('HSET', k.stats, 'offers_off', digits(now + OFFERS_OFF_MS))
end
