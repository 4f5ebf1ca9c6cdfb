--- delist: takes a queue's name out of the registry.
--
-- @flags allow-oom
-- @key queues SET the names of all queues
-- @item queue its name
-- @returns OK they are out
-- @cost O(queues)

for i = ITEM_FIRST, #ARGV do
  redis.call('SREM', queues, ARGV[i])
end
return {'OK'}
