--- outbox_done: follow-up jobs were enqueued: they leave the outbox.
--
-- @flags allow-oom
-- @key outbox HASH token -> follow-up jobs to be enqueued
-- @item token under which they lay there
-- @returns OK gone
-- @cost O(items)

redis.call('HDEL', outbox, unpack(ARGV, ITEM_FIRST))
return {'OK'}
