-- Takes all the locks, or the first free ones of as many as asked for; or a place in the queue of
-- each.
--
-- Keys: the locks, and the mirror.
-- Arguments (those in brackets may be missing):
--   owner          path of the tokens of its ancestors and its own
--   lease          ms
--   [who]          WHO (lock.lua), with its notes
--   [mode]         x, s or l; x if it is missing
--   [limit]        of mode l; the limit that is stored overrides it. Missing: the stored one
--   [mirror, mirrors]   KIND:NAME, another program's lock to hold besides; of one exclusive lock; 1
--   [no_nesting]   1: refuse it below an ancestor that holds the lock
--   [not_after]    server's clock in ms: do nothing later than that
--   [attempt]      the number of the request (attempts.lua)
--   [place_ttl]    ms that a place in a queue is kept without a call; missing: do not queue
--   [far_ttl]      the same, at most, where many come before it; a waiter that is told so much must
--                  call when it is poked. Only for one lock, of an owner that does not nest, with
--                  none of latest, priority, take, mirror, unless_done, epoch and member
--   [queue_only]   1: take none of the locks, even if all are free
--   [places]       the places that the answer before told
--   [count]        1: leave out the holes when the position is counted
--   [latest]       the group: send away those that wait for it
--   [replace]      1: ask the holders to release the lock
--   [priority]     -9 to 9
--   [bound]        ms that others may pass a waiter that came earlier
--   [take]         N/M: take N of the M locks; not in a quorum
--   [unless_done]  ms: take none of the locks if a run of each succeeded and began less than that
--                  ago
--   [pauses]       the key of the pauses of GLOBs (globs.lua), and of the minimum version
--   [version]      the caller's version of rlock, X.Y.Z (minimum.lua)
--   [accept_by_message, accept_ms]   a token, and the ms from now on for which it takes the lock if
--                  that is handed over to it with the token (holders.lua)
--   [epoch]        the server's marker (epoch.lua)
--   [member, server, proposal, fences, held]   of a quorum: the marker (member.lua), the process of
--                  the server, a fence that all may take, and, of locks held elsewhere, the fences
--                  and for how many ms
-- Answers:
--   {'GRANTED', now, {fence...}, {slot...}}   if a limit is stored, two more: 0, {that limit, or
--     0...}. The fence of a lock that was not taken is 0; the caller does not wait for it any more
--   {'QUEUED', now, places, position, 1 if queued anew, which key, holders, ms, the oldest holder
--     or the first waiter, the stored limit, ms that a far waiter's place is kept}   of several of
--     which it takes some, the key is one that is not free, the ms tell when the first may be, and
--     the position is the best of them
--   {'SUPERSEDED', now, which key, the waiter that came instead}
--   {'DONE', now, which key, ms since the run began, the run, '' if it is forgotten}
--     after these two it does not wait for any of them any more
--   {'HELD', now, how many wait, which key, holders, ms until the first may be dead, the oldest
--     holder or the first waiter, the stored limit}
--   {'CLOSED', now, ms until it opens (0: not known), places or '', position, 1 if queued anew,
--     which key, the pause, ms as QUEUED has them}   no newcomer is let in; without a pause its
--     limit is 0
--   {'GRACE', now, ms until it grants anything, places or '', position, 1 if queued anew}   no
--     known client holds it
--   {'ASKED', now, which key, 1, ms, its entry}   it holds that one, and was asked to release it,
--     or others of the keys were taken away: it must release all before it asks again
--   {'STALE', now}   {'BARRED', now}   {'MISFIT', now, what, which key}
-- In a quorum, GRANTED, ASKED and HELD as member_answer() has them.
--- @include "acquire/request"
--- @include "acquire/quick_grant"

local answer = parse_request() or load_request() or quick_grant()
if answer then return answer end

-- Redis makes each function anew whenever a script passes over it. The functions that a quick
-- answer does not need come behind it: making them would cost as much as the answer. They are in a
-- function of their own: for each local that one of them shares, Lua walks through all the shared
-- locals of the function around it, the latest first.
--- @include "acquire/conditions"

answer = check_conditions() or quick_grant('checked')
if answer then return answer end

return (function()
--- @include "acquire/grant"
--- @include "acquire/decide"
--- @include "acquire/refuse"

answer = answer_owner() or place_or_refuse()
if answer then return answer end
local refusal, decision = decide()
if refusal then return refusal end
if decision.grant then return grant(decision.grant) end
if args.replace then ask_to_release(decision.lacks) end
if request.place_ttl == 0 then return refuse(decision) end
return queue_up(decision)
end)()
