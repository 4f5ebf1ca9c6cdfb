--- registry: the names of all queues.
--
-- @flags no-writes
-- @key queues SET the names of all queues
-- @returns OK the names
-- @cost O(queues)

local reply = {'OK'}
for _, name in ipairs(redis.call('SMEMBERS', queues)) do
  reply[#reply + 1] = name -- unpack() would fail beyond some 8,000
end
return reply
