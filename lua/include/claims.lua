--- claims_of(claims, worker): which ids that worker claimed ahead in its
-- last call, and the (id, token) pairs of that call. A job claimed ahead had not
-- started, so it is not charged when its worker dies.
local function claims_of(claims, worker)
  local saved = redis.call('HGET', claims, worker)
  local lease, list = string.match(saved or '', '^%d+ %d+ (%d+)[^\n]*\n(.*)$')
  local ahead, pairs_ = {}, {}
  for id, token, mark in string.gmatch(list or '', '([^\t\n]+)\t(%S+)\t(%d)\n') do
    pairs_[#pairs_ + 1] = {id = id, token = token}
    ahead[id .. '\t' .. token] = mark == '1'
  end
  return ahead, pairs_, tonumber(lease)
end
