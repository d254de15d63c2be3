-- The mirror of a lock: a key in which programs with another library keep the same lock. If it is
-- asked for, the lock is held together with this key. The field m of the lock describes it:
--   KIND OWNER NAME
-- OWNER is the family that holds both. NAME is the key. Of the kind "string", the key exists while
-- it is held, and its value tells the holder; of the kind "redisson" it is a hash with one field,
-- its holder's. Of the kind "shedlock" it is a row of that name in a table of the database; a host
-- shows it as a string that lasts until lock_until, with locked_by as its value: "HOST rlock UUID"
-- if it is ours. Only an owner of ours writes the mark that it is OWNER's.
--
-- The mirror is in the slot of the lock, and among KEYS: a node of a Cluster says when it lacks a
-- declared key, and takes any other key that it lacks for a free one. A call that does not know the
-- mirror is told it by
--   {'MIRROR', now, {key...}}: nothing was done; call again with these behind the locks
--- @include "families"

-- Makes the operations on mirrors, and returns them as a table of functions: mirrors.follow(),
-- mirrors.take() and so on. They are made only where a script calls this, since most calls of a
-- script meet no mirror, and would only pay for them.
local function open_mirrors()
  local mirrors = {}
--- @include "mirror/key"
--- @include "mirror/follow"
--- @include "mirror/acquire"
--- @include "mirror/take_away"
  return mirrors
end
