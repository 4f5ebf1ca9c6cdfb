--- @include clock
--- ledger_add(stats, event, n): books n moves of one kind.
-- Called by every script that moves a job, in the same step as the move, so the
-- sums that `weir audit` checks are true after every script.
local function ledger_add(stats, event, n)
  if n > 0 then
    redis.call('HINCRBY', stats, event, digits(n)) -- of a number Redis would write 17 digits
  end
end
