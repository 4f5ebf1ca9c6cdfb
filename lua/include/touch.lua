--- touch(command, ...): reads every key that a script may write before its first
-- write. Redis does not undo a script that fails half-way, so a foreign key of
-- another type, or one that has moved to another node, must stop it before that.
local function touch(command, ...)
  for _, key in ipairs({...}) do
    redis.call(command, key)
  end
end
