--- describe: what a worker tells about itself, and what it is told.
--
-- @flags allow-oom
-- @key worker HASH its fields
-- @arg keep forget it after so many ms; 0: at once
-- @arg keep_order the same while an order stands
-- @arg state running, quiet or draining
-- @item name a field
-- @item value its value
-- @returns OK written; second: the order that stands, or empty; third: its grace time, ms, or empty
-- @cost O(fields)
--
-- The order is a state to be in, not a message: it is read with every beat, so none can be
-- missed. It stands until another one comes; `run` until it is obeyed.

if keep == '0' then
  redis.call('DEL', worker)
  return {'OK', ''}
end
local told = redis.call('HMGET', worker, 'order', 'order_grace')
local order = told[1] or ''
if order == 'run' and state == 'running' then
  redis.call('HDEL', worker, 'order', 'order_at', 'order_by')
  order = ''
end
local fields = {'state', state}
for i = ITEM_FIRST, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
redis.call('HSET', worker, unpack(fields))
redis.call('PEXPIRE', worker, order == '' and keep or keep_order)
return {'OK', order, told[2] or ''}
