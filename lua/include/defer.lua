--- defer_job(k, id, at): from ready to delayed. On a list its place stays, under a tombstone:
-- reserve skips it, and who puts the id into ready again takes it back.
--- @include due
--- @include ledger
--- @include waiting

local function defer_job(k, id, at)
  waiting_store(k, id)
  delayed_add(k.delayed, k.due, {at, id})
  ledger_add(k.stats, 'deferred', 1)
end
