-- include database.lua
-- include lock.lua

-- Takes another program's lock away from it: the mirror that one could hold with this lock. The
-- program is not told. What a holder of this lock has stays.
-- ARGV: the mirror, as KIND:NAME; its token as it was told, or '' to be told
-- {'RELEASED', now}: nobody else has it, any more
-- {'ABSENT', now}: with a token; nobody else had it
-- {'MISFIT', now, what, 1}
-- {'HELD', now, 0, 1, 1, ms until it ends or 0, 'foreign NAME', '', token}
local lock, refusal = load_lock(1)
if not lock then return refusal end
local mirrors
-- include mirror.lua
return mirrors.take_away(lock, ARGV[1], ARGV[2])
