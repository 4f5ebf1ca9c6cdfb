--- enroll: puts a queue's name into the registry, so that schedulers serve it.
--
-- @flags allow-oom
-- @key queues SET the names of all queues
-- @item queue its name
-- @returns OK they are in
-- @cost O(queues)

for i = ITEM_FIRST, #ARGV do
  redis.call('SADD', queues, ARGV[i])
end
return {'OK'}
