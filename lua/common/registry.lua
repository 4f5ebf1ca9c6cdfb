--- registry: the names of all queues.
--
-- @key queues SET the names of all queues
-- @returns OK the names
-- @cost O(queues)

return {'OK', unpack(redis.call('SMEMBERS', queues))}
