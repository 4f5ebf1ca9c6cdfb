--- delivery_state(k, id, p): the state of a job of the stream that runs; p as pending_range()
-- has it. A plain job has none stored: what its delivery tells is said as if it had.
--- @include clock
--- @include entry
--- @include group
--- @include state

local function delivery_state(k, id, p)
  local worker, generation = consumer_parts(p[2])
  local token = entry_token(p[1], p[4], generation)
  local s = state_read(redis.call('HGET', k.state, id) or '') or {
    flag = '-', unique = '-', keep = '0', deliveries = digits(p[4]), attempts = '0', lost = '0',
    interrupted = '0', snoozes = '0', max_deliveries = '3', progress = ''}
  if s.token ~= token or s.worker ~= worker then
    s.token, s.worker, s.started = token, worker, digits(p[3])
  end
  return state_text(s)
end
