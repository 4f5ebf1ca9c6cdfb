--- What ack, retry, bury and release share: which of the given deliveries still
-- own their jobs, and the end of those that were cancelled while they ran.
--- @include clock
--- @include held
--- @include unique_next
--- @include remove
--- @include ledger
--- @include ended
--- @include touch
--- @include progress_over

-- only_item(argv, first, words): the id of the one item; nil: there are more, or none.
local function only_item(argv, first, words)
  return #argv == first + words - 1 and argv[first] or nil
end

-- answer_check(k, argv, first, words, worker, plain): items of `words` words each begin
-- with id and token. Answers the held ones as {id=, token=, text=, at=position of the
-- item's first word}, and notes as position, word, position, word, ... for all others. Given a
-- list `plain`, the ids of those held ones go there that are not cancelled, hold no unique
-- key and keep no result: there is nothing more to know about them.
local function answer_check(k, argv, first, words, worker, plain)
  local ids, tokens, held, notes, seen, n, plain_n = {}, {}, {}, {}, {}, 0, 0
  for i = first, #argv, words do
    n = n + 1
    ids[n], tokens[n] = argv[i], argv[i + 1]
  end
  if n == 0 then
    return held, notes
  end
  local texts, said = held_look(k, ids, tokens, worker, plain ~= nil)
  for i = 1, n do
    local id, word = ids[i], said[i]
    if not word and seen[id] then
      word = 'ANSWERED'
    end
    if word then
      notes[#notes + 1] = digits(i - 1)
      notes[#notes + 1] = word
    else
      seen[id] = true
      if word == false then
        plain_n = plain_n + 1
        plain[plain_n] = id
      else
        local flag, key = string.match(texts[i], STATE_END)
        if flag ~= '-' then
          touch('HLEN', k.progress)
        end
        if key ~= '-' then
          unique_next_touch(k, key, id)
        end
        held[#held + 1] = {id = id, text = texts[i], at = first + (i - 1) * words, token = tokens[i]}
      end
    end
  end
  return held, notes
end

-- answer_count(k, notes): books what was refused; for people, not for the sums.
--- @rare answer_count
local function answer_count(k, notes)
  local stale = 0
  for i = 2, #notes, 2 do
    if notes[i] == 'STALE' then
      stale = stale + 1
    end
  end
  ledger_add(k.stats, 'stale', stale)
end

-- end_cancelled(k, held, first, notes, words, now): the flagged ones end as cancelled,
-- whatever their handler said; answers the others.
local function end_cancelled(k, held, first, notes, words, now)
  local ids, others = {}, {}
  for _, h in ipairs(held) do
    local flag, key = string.match(h.text, STATE_END)
    if flag == 'c' then
      ids[#ids + 1] = h.id
      progress_over(k, h.id, state_read(h.text), 'cancelled', now)
      unique_free(k.unique, key, h.id)
      unique_next(k, key, h.id)
      ended(k, h.id, 'cancelled', '')
      notes[#notes + 1] = digits((h.at - first) / words)
      notes[#notes + 1] = 'CANCELLED'
    else
      others[#others + 1] = h
    end
  end
  if #ids > 0 then
    held_finish(k, ids)
    remove_jobs(k, ids)
    ledger_add(k.stats, 'cancelled_processing', #ids)
  end
  return others
end
