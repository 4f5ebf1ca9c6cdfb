--- extend: renews the leases of the deliveries a worker holds.
--
-- @flags allow-oom
-- @transition processing -> processing
-- @key processing ZSET id -> end of its lease, ms
-- @key state HASH id -> what changes
-- @arg now the test clock, ms; empty: the server's
-- @arg worker the worker's id
-- @arg lease ms
-- @item id the job's id
-- @item token of the delivery
-- @item limit ms after its start at which it must be over; 0: none
-- @returns OK renewed, but for the items in the notes
-- @answer CANCEL renewed, and the job was cancelled: stop it
-- @answer TIMEOUT not renewed: it ran longer than it may
-- @answer ANSWERED this delivery was answered before; nothing changed
-- @answer STALE another delivery owns the job; nothing changed
-- @answer GONE no such job; nothing changed
-- @cost O(jobs * log processing)
--
-- Declares two keys only, which exist as long as it has work: so leases are renewed
-- also while the queue's slot moves to another node of a cluster.
--- @include clock
--- @include state

-- Decide.
local now = clock(now_arg)
local ids, notes, scores = {}, {}, {}
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  ids[#ids + 1] = ARGV[i]
end
if #ids == 0 then
  return {'OK'}
end
local texts = redis.call('HMGET', state, unpack(ids))
local leases = redis.call('ZMSCORE', processing, unpack(ids))
for i = 1, #ids do
  local at = ITEM_FIRST + (i - 1) * ITEM_WORDS
  local word = held_word(texts[i], leases[i], ARGV[at + 1], worker)
  if not word then
    local s, limit = state_read(texts[i]), tonumber(ARGV[at + 2])
    if limit > 0 and now >= s.started + limit then
      word = 'TIMEOUT'
    else
      word = s.flag == 'c' and 'CANCEL' or nil
      scores[#scores + 1] = now + lease
      scores[#scores + 1] = ids[i]
    end
  end
  if word then
    notes[#notes + 1] = digits(i - 1)
    notes[#notes + 1] = word
  end
end

-- Apply.
if #scores > 0 then
  redis.call('ZADD', processing, 'XX', unpack(scores))
end
return {'OK', unpack(notes)}
