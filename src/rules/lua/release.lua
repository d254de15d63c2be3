-- Releases what the owner holds and its places in the queues, and wakes the next waiter.
--
-- Keys: the locks, and their mirrors.
-- Arguments (those in brackets may be missing):
--   owner
--   [mirrors]     how many of the keys are mirrors
--   [unread]      1: the answer is not read: a mirror that is not among the keys ends by itself
--   [not_after]   server's clock in ms: do nothing later than that
--   [attempt]     the number of the request (attempts.lua): what a later one has made stays
--   [bar]         ms for which the owner must not acquire from now on
--   [at_least]    ms for which a lock is kept after it was acquired
--   [strict]      1: as in renew.lua
--   [notes]       how its run ended; unused=1: it had none; refused=1: it waited without success
--   [epoch, lease]   the server's marker (epoch.lua), and the lease that was asked for
-- Answers:
--   {'RELEASED', now}   {'STALE', now}   {'MISFIT', now, what, which key}
--   {'MIRROR', now, {key...}}
--   {'ABSENT', now, which key, holders, ms, holder, the run}   the run as in renew.lua
--- @include "attempts"
--- @include "entries"
--- @include "slots"
--- @include "memory"
--- @include "epoch"

if is_late(now) then return { 'STALE', now } end

local owner, notes = args.owner, args.notes or ''
local bar, at_least = tonumber(args.bar or 0), tonumber(args.at_least or 0)
local barred = args.attempt and owner .. '/' .. args.attempt or owner
local locks, worst, mirrored = {}, nil, false
local run_out = {} -- the locks whose lease has ended, where that counts

-- As long as the server may have forgotten locks, a renewal takes a lock that is not there for a
-- forgotten one: also one that is under way, or that another process of the owner sends later.
local grace = args.epoch and grace_left(args.epoch, tonumber(args.lease)) or 0
if args.attempt or not args.not_after then bar = math.max(bar, grace) end

-- Sets lock.own and lock.family, the owner's entry and the family of that. Returns the refusal, if
-- a later request of the owner was executed, or a strict release must not touch a run; nil: none. A
-- strict one takes an entry whose lease has ended for none, and notes that in run_out; it leaves
-- the place of an owner that only waits. i: the number of the lock among KEYS.
local function find_own(lock, i)
  lock.own, lock.family = find_entry(lock, owner)
  local place = lock.own_place and redis.call('HGET', lock.key, lock.own_place)
  if is_overtaken(lock.own and lock.own.rest or place or '') then
    return { 'STALE', now }
  end
  if args.strict and lock.own and is_dead(lock.own) then lock.own, run_out[lock] = nil, true end
  if args.strict and lock.own and is_of_run(lock.own) then return { 'MISFIT', now, 'run', i } end
  if args.strict and not lock.own then lock.own_place = nil end
end

-- Whether the release of the lock takes no more than to remove the owner's entry: it is live and
-- the only one of its family, neither the owner nor another client waits for the lock or to nest in
-- the owner (lock.extra is the queue of those), and there is no mirror.
local function is_usual(lock)
  local is_only_entry = lock.own and not is_dead(lock.own) and not lock.family.entries[2]
  local any_waits = lock.own_place or lock.queue.first <= lock.queue.last or lock.extra
  return is_only_entry and not any_waits and not lock.mirror
end

-- Loads the locks into "locks", with own and family of each, and sets "mirrored": one has a mirror.
-- A lock that cannot be read (MISFIT) is left out, and does not keep the others from being
-- released: then "worst" is what is answered. Returns whether the release is usual for all
-- (is_usual()); or false and the refusal to return.
local function load_locks()
  local usual = bar == 0 and at_least == 0
  for i = 1, LOCKS do
    local lock, refusal = load_families(i, owner, 'q:' .. owner)
    if lock then
      locks[#locks + 1] = lock
      mirrored = mirrored or lock.mirror
      refusal = find_own(lock, i)
      if refusal then return false, refusal end
      usual = usual and is_usual(lock)
    else
      if refusal.err then return false, refusal end
      worst, usual = refusal, false
    end
  end
  return usual
end

local usual, refusal = load_locks()
if refusal then return refusal end

if usual then
  for _, lock in ipairs(locks) do
    -- The only entry of its family. HDEL comes first: a full server accepts it.
    local held, field = lock.held, 'h:' .. lock.family.name
    if held.count == 1 then
      redis.call('HDEL', lock.key, 's', 'b', field)
    else
      held.count = held.count - 1
      if held.oldest == lock.family.name then held.oldest = '-' end
      redis.call('HDEL', lock.key, field)
      redis.call('HSET', lock.key, 's', state_text(held))
      if lock.own.slot > 0 then free_slot(lock, lock.own.slot) end
    end
    remember(lock, lock.family, lock.own, notes)
  end
  return { 'RELEASED', now }
end

-- As in acquire.lua, the functions that the usual release does not need come behind it.
return (function()
--- @include "holders"
--- @include "mirror"

local mirrors = mirrored and open_mirrors()
local lacking = mirrors and not args.unread and mirrors.lacking(locks)
if lacking then return lacking end

-- Keeps a lock that was acquired less than at_least ago until that time has passed: instead of
-- being removed, its entry ("own", of that family) gets the deadline at which it has, and the note
-- kept=1: its run has ended. A lock that seems to have been acquired in the future is kept from now
-- on, as the clock was set back.
local function let_run_out(lock, own, family)
  remember(lock, family, own, notes)
  -- The end is noted behind the words of WHO, once: the same release may be asked for again.
  if not has_note(own.rest, 'kept=1') then
    local who = string.sub(own.rest, -1) == ' ' and NOBODY or '' -- where the entry has no WHO
    own.rest = own.rest .. who .. ' kept=1' .. (notes ~= '' and ' ' or '') .. notes
  end
  own.rest = with_attempt(own.rest) -- a renewal that comes late does not change the end
  own.deadline, own.lease = math.min(own.since, now) + at_least, at_least
  lock.held.earliest = math.min(lock.held.earliest, own.deadline)
  lock.held.longest = math.max(lock.held.longest, own.lease)
  keep_key(lock, 0)
  write_holders(lock, family)
end

-- Notifies the waiter whose turn is next, if holders still keep it out: it calls, learns when their
-- lease ends, and asks again then. It knows that end only if it was first when it called last, and
-- the end is still the same. parent: the entry of a holder; the waiter is the next one of those
-- that nest in it. family: that of the entry. Both are nil: the waiter is the next one of all
-- others.
local function notify_first(lock, parent, family)
  local head = first_in_turn(lock, queue_below(lock, parent))
  local is_known = head and head.owner ~= ''
  if is_known and not head.elsewhere and obstacle(lock, head.mode, parent, family) then
    notify(lock, head)
  end
end

-- Releases one lock: removes the owner's entry, or has it run out where at_least asks for that;
-- removes its place in the queue; bars a request of it that is under way ("bar"); and calls the
-- waiters that can go then. Returns the entry that the owner had; nil: none.
local function release(lock)
  local own, family = lock.own, lock.family
  local mode_before -- of the family; nil: the entry stays

  keep_key(lock, 0)
  if own and at_least > 0 and own.since + at_least > now then
    let_run_out(lock, own, family)
  elseif own then
    own.ended = notes
    mode_before = remove(lock, own, family)
  end
  if lock.own_place and notes == 'refused=1' then count_refusal(lock) end
  local parent, above = find_parent(lock)
  local queue = queue_below(lock, parent)
  local head = lock.own_place and first_in_turn(lock, queue)
  local was_first = head and head.owner == owner
  leave_queue(lock)
  local runs_out = own and not mode_before
  if was_first or runs_out then notify_first(lock, parent, above) end
  -- The owner's acquisition may still be under way, in a socket or a proxy. When it arrives, it
  -- finds this.
  if bar > 0 then
    note_barred(lock, barred, bar)
    keep_key(lock, 0)
  end
  if lock.mirror then mirrors.follow(lock) end
  wake_after(lock, owner, family or above, mode_before)
  return own
end

for _, lock in ipairs(locks) do
  if not release(lock) then
    local absent = { 'ABSENT', now, lock.number, describe_present(lock) }
    absent[7] = revoked_run(lock, owner)
    -- If the server has forgotten the lock, no other client can have acquired it since.
    local forgotten = grace > 0 and absent[4] == 0 and not run_out[lock]
      and not was_taken_away(lock, owner)
    if not forgotten then worst = worst or absent end
  end
end
return worst or { 'RELEASED', now }
end)()
