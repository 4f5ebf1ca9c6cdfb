--- notes(...): what became of each item.
--- @include clock

local function notes(jobs, argv, first, words, worker, now, text)
  return {first, 'STALE', clock(now), words, worker, text, jobs, argv}
end
