--- The time on the server that runs the script, read once per script.
-- One clock decides about all jobs, so a client whose clock is wrong can neither
-- keep a job too long nor lose it too early. Tests may pass a time of their own.

-- now_ms(test): rounded down: for "is it over yet?" and for records.
-- later_ms(test): with its fraction: what is counted from it comes neither early nor up to
-- a ms late. A double holds such a time to a quarter of a microsecond.
-- Both answer the same call of TIME.
local test_clock = false

local function clock(test)
  test_clock = test ~= ''
  if test_clock then
    local ms = tonumber(test)
    return ms, ms, ms * 1000
  end
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2]
  local ms = math.floor(us / 1000)
  return ms, us / 1000, us
end

-- clock_is_test(): did the caller bring a time of its own?
local function clock_is_test()
  return test_clock
end

-- A whole number as text: tostring() would write 1.796e+12, and %.0f takes ten times as long.
local function digits(n)
  return n == 0 and '0' or n == 1 and '1' or string.format('%d', n)
end
