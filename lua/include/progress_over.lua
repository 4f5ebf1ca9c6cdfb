--- progress_over(k, id, s, word, now): this job is over, and its producer, or its queue, said how
-- long its progress is kept after that: "keep=MS " stands before the text. It leaves the state s
-- for the hash `progress`: id -> "until ended word text". What was not told so goes with the job.
-- Such a state has the flag p, unless it was cancelled, so that few look here. k has `progress`.

local function progress_over(k, id, s, word, now)
  local keep, text = string.match(s and s.progress or '', '^keep=(%d+) (.*)$')
  if not keep then
    return
  end
  s.progress = ''
  if keep ~= '0' then
    redis.call('HSET', k.progress, id,
               digits(now + keep) .. ' ' .. digits(now) .. ' ' .. word .. ' ' .. text)
  end
end
