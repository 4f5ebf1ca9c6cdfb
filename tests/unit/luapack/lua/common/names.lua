--- names: the names of all queues.
--
-- @flags no-writes
-- @key queues SET the names
-- @returns OK names
-- @cost O(queues)
return {'OK', redis.call('SMEMBERS', queues)}
