--- farewell: a producer that closes cleanly takes its channels with it.
--
-- @flags allow-oom
-- @key producers HASH channel -> its last call
-- @item channel 16 bytes as hex
-- @returns OK removed
-- @cost O(channels)

for i = ITEM_FIRST, #ARGV do
  redis.call('HDEL', producers, ARGV[i])
end
return {'OK'}
