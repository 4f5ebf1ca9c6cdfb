--- extend: renews the leases of the deliveries a worker holds.
--
-- @flags allow-oom
-- @transition processing -> processing
-- @key list:processing ZSET id -> end of its lease, ms
-- @key stream:stream STREAM the jobs that wait and run
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
-- Declares two keys only, which exist as long as it has work (the state of a stream's
-- job from its first renewal on): so leases are renewed also while the queue's slot moves
-- to another node of a cluster.
--- @include clock
--- @include held

-- Decide.
local now = clock(now_arg)
local named, tokens, notes, kept, their = {}, {}, {}, {}, {}
for i = ITEM_FIRST, #ARGV, ITEM_WORDS do
  named[#named + 1] = ARGV[i]
  tokens[#named] = ARGV[i + 1]
end
if #named == 0 then
  return {'OK'}
end
local texts, words = held_look(k, named, tokens, worker)
for i = 1, #named do
  local word = words[i]
  if not word then
    local s, limit = state_read(texts[i]), tonumber(ARGV[ITEM_FIRST + (i - 1) * ITEM_WORDS + 2])
    if limit > 0 and now >= s.started + limit then
      word = 'TIMEOUT'
    else
      word = s.flag == 'c' and 'CANCEL' or nil
      kept[#kept + 1], their[#kept + 1] = named[i], texts[i]
    end
  end
  if word then
    notes[#notes + 1] = digits(i - 1)
    notes[#notes + 1] = word
  end
end

-- Apply.
if #kept > 0 then
  held_renew(k, kept, their, now, lease)
end
return {'OK', unpack(notes)}
