-- Marks a server that has forgotten nothing, so that it grants at once.
--
-- Arguments (those in brackets may be missing):
--   [not_after]   server's clock in ms: do nothing later than that
--   epoch     the server's marker (epoch.lua)
--   [force]   1: mark it whatever the marker says
--   [user]    who gets rights in a database (src/host)
-- Answers:
--   {'MARKED', now}   {'GRACE', now, ms until it grants anything, '', 0, 0}   {'STALE', now}
--- @include "arguments"
--- @include "epoch"

if is_late(now) then return { 'STALE', now } end
local anew = args.force or redis.call('EXISTS', args.epoch) == 0
local left = grace_left(args.epoch, 0, anew)
if left > 0 then return { 'GRACE', now, left, '', 0, 0 } end
return { 'MARKED', now }
