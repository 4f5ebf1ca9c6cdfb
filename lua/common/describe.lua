--- describe: what a worker tells about itself, for `weir worker ls`.
--
-- @flags allow-oom
-- @key worker HASH its fields
-- @arg keep forget it after so many ms; 0: at once
-- @item name a field
-- @item value its value
-- @returns OK written
-- @cost O(fields)

if keep == '0' then
  redis.call('DEL', worker)
  return {'OK'}
end
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  redis.call('HSET', worker, ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', worker, keep)
return {'OK'}
