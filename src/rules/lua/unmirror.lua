-- Takes another program's lock away from it: the mirror that could be held with this lock. The
-- program is not told. A holder of this lock keeps what it has.
--
-- Keys: the lock, and the mirror.
-- Arguments (those in brackets may be missing):
--   mirror, mirrors   KIND:NAME; 1
--   [not_after]   server's clock in ms: do nothing later than that
--   [token]   the token that was told of it; missing: tell it
-- Answers:
--   {'RELEASED', now}: no other program has it, any more
--   {'ABSENT', now}: with a token; no other program had it
--   {'HELD', now, 0, 1, 1, ms until it ends or 0, 'foreign NAME', '', token}
--   {'MISFIT', now, what, 1}   {'STALE', now}
--- @include "arguments"
--- @include "mirror"

if is_late(now) then return { 'STALE', now } end
local lock, refusal = load_families(1)
if not lock then return refusal end
return open_mirrors().take_away(lock, args.mirror, args.token or '')
