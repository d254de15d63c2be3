-- Extends leases, all or none. It makes none, except where the server may have forgotten it.
--
-- Keys: the locks, and their mirrors.
-- Arguments (those in brackets may be missing):
--   owner
--   [mirrors]     how many of the keys are mirrors
--   [lease]       ms; missing or 0: as before
--   [strict]      1: another process asks than its holder: a lease that has run out is lost, and a
--                 run's is refused
--   [not_after]   server's clock in ms: do nothing later than that
--   [attempt]     the number of the request (attempts.lua)
--   [handed]      1: the lock was handed over to it, so it calls the next waiter that can go
--   [epoch]       the server's marker (epoch.lua); and to hold again what it has forgotten, with a
--                 lease:  mode, limit, who, held (for how many ms), and of each key  fences, slots
--   [member, server, fences]   of a quorum: the marker (member.lua), the process of the server, and
--                 the fences from now on
-- Answers:
--   {'RENEWED', now, {fence...}, {slot...}, 1 if one of them had run out, 2 if one was forgotten}
--   {'LOST', now, which key, holders, ms, holder, the run}   the run as memory.lua writes it, if
--     the lock was taken away from it
--   {'ASKED', now, which key, 1, ms, the owner's entry}   it must release it; nothing is renewed
--   {'MISFIT', now, what, which key}   {'STALE', now}   {'MIRROR', now, {key...}}
-- In a quorum, RENEWED, LOST and ASKED as member_answer() has them.
--- @include "attempts"
--- @include "families"
--- @include "member"
--- @include "mirror"
--- @include "epoch"

if is_late(now) then return { 'STALE', now } end

local owner, lease = args.owner, tonumber(args.lease or 0)
local locks, lost, mirrored = {}, nil, false

-- The numbers in an argument of the call that lists one for each lock, as a list of texts; without
-- the argument (nil) an empty one.
local function numbers_of(text)
  local list = {}
  for word in string.gmatch(text or '', '%d+') do list[#list + 1] = word end
  return list
end
local fences = args.fences and numbers_of(args.fences) or {}

-- Loads the locks into "locks", with own and family (the owner's entry, and the family of that) of
-- each, and sets "mirrored": one has a mirror. Returns the refusal to return, or nil. If the owner
-- does not hold one of the locks any more, sets "lost" to the number of that, and loads no more.
local function load_locks()
  for i = 1, LOCKS do
    local lock, refusal = load_families(i, owner)
    if not lock then return refusal end
    lock.own, lock.family = find_entry(lock, owner)
    locks[i], mirrored = lock, mirrored or lock.mirror
    if lock.own and is_overtaken(lock.own.rest) then return { 'STALE', now } end
    if not lock.own or args.strict and is_dead(lock.own) then
      lost = i
      return nil
    end
    if args.strict and is_of_run(lock.own) then return { 'MISFIT', now, 'run', i } end
    if has_note(lock.own.rest, 'asked=') then
      return member_answer({ 'ASKED', now, i, 1, math.max(lock.own.deadline - now, 0),
                         write_entry(lock.own) })
    end
  end
end

local answer = load_locks()
if answer then return answer end

local mirrors = mirrored and not lost and open_mirrors()
answer = mirrors and mirrors.lacking(locks)
if answer then return answer end
for i, lock in ipairs(mirrors and locks or {}) do
  if lock.mirror then
    local holders, ms, shown = mirrors.loss(lock)
    if shown then return member_answer({ 'LOST', now, i, holders, ms, shown }) end
  end
end

-- Extends the owner's entry of one lock by its lease from now on, and writes it. Writes lock.held
-- as well where that becomes untrue (a deadline before "earliest", a lease longer than "longest"),
-- or where the only family can be noted as the oldest one again. It may still name an "earliest"
-- that is too early or a "longest" that is too long, which only makes others look once more. fence:
-- the one that a quorum has settled on, as text; nil: the entry keeps its own.
local function renew(lock, fence)
  local own, held = lock.own, lock.held
  own.lease = lease > 0 and lease or own.lease
  own.deadline, own.rest = now + own.lease, with_attempt(own.rest)
  keep_key(lock, own.lease)
  if fence then settle(lock, own, fence) end
  local is_untrue = own.deadline < held.earliest or own.lease > held.longest
  local is_oldest = held.oldest == '-' and held.count == 1 -- but that is not noted
  if is_untrue or is_oldest then
    if is_oldest then held.oldest = lock.family.name end
    held.earliest = math.min(held.earliest, own.deadline)
    held.longest = math.max(held.longest, own.lease)
    write_holders(lock, lock.family)
  else
    write_family(lock, lock.family)
  end
end

local grace = args.epoch
  and grace_left(args.epoch, math.max(lease, locks[1].own and locks[1].own.lease or 0)) or 0

-- Renews all locks, and has their mirrors last as long. Returns the answer RENEWED: the fence and
-- the slot of each, and 1 if one of the leases had run out, else 0.
local function renew_all()
  local held_fences, slots, late = {}, {}, 0
  for i, lock in ipairs(locks) do
    -- The lease has run out, but no client came that would have removed the entry: so it is as good
    -- as if the lease had never run out.
    if is_dead(lock.own) then late = 1 end
    renew(lock, args.member and fences[i]) -- without a quorum, "fences" is only for reclaim_all()
    if lock.mirror then mirrors.follow(lock) end
    held_fences[i], slots[i] = lock.own.fence, lock.own.slot
  end
  return member_answer({ 'RENEWED', now, held_fences, slots, late })
end

if not lost then
  answer = renew_all()
  if not args.handed or locks[1].own.mode == 'x' then return answer end
end

-- As in acquire.lua, the functions that the usual renewal does not need come behind it.
return (function()
--- @include "holders"
--- @include "reclaim"

if answer then
  wake(locks[1])
  return answer
end

-- Has the owner hold all its locks again: those that the server has forgotten are reclaimed, as the
-- call describes them, and the others are renewed. First it finds out whether the owner can have
-- all, as a part would be of no use. Returns the answer, or a refusal; nil if the owner cannot have
-- one of them.
local function reclaim_all()
  -- For each lock: what is claimed, and the holders that the server still knows; nil: it is held.
  local slots, claims, known = numbers_of(args.slots), {}, {}
  for i = 1, LOCKS do
    local lock, refusal = locks[i], nil
    if not lock then lock, refusal = load_families(i, owner) end
    if not lock then return refusal end
    lock.own, lock.family = find_entry(lock, owner)
    locks[i] = lock
    claims[i] = { owner = owner, lease = lease, mode = args.mode, limit = tonumber(args.limit or 0),
                  who = args.who, fence = fences[i], slot = tonumber(slots[i]),
                  since = now - tonumber(args.held or 0) }
    if not lock.own then
      known[i] = find_known_holders(lock, claims[i])
      if not known[i] then return nil end
    end
  end
  local held_fences, held_slots = {}, {}
  for i, lock in ipairs(locks) do
    if known[i] then reclaim(lock, claims[i], known[i]) else renew(lock) end
    held_fences[i], held_slots[i] = lock.own.fence, lock.own.slot
  end
  return { 'RENEWED', now, held_fences, held_slots, 2 } -- 2: one was forgotten
end

answer = grace > 0 and args.mode and reclaim_all()
if answer then return answer end
answer = { 'LOST', now, lost, describe_present(locks[lost]) }
answer[7] = revoked_run(locks[lost], owner)
return member_answer(answer)
end)()
