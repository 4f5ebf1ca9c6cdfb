--- stream_sizes(k): how many jobs of the stream wait, and how many run.
--- @include group

local function stream_sizes(k)
  local group, front = group_info(k), 0
  for _, c in ipairs(group and redis.call('XPENDING', k.stream, GROUP)[4] or {}) do
    front = front + (c[1] == FRONT and c[2] or 0)
  end
  local held = group and group.pending - front or 0
  return redis.call('XLEN', k.stream) - held, held
end
