-- Grants locks, to a newcomer or once more.
--- @include "acquire/quick_grant"
--- @include "acquire/places"
--- @include "mirror"

local mirrors = args.mirror and open_mirrors()

-- The answer GRANTED: the fence and slot of each lock, 0 for those that --any has left out; and, if
-- a limit is stored, that of each lock, 0 where there is none.
local function answer_granted()
  local fences, slots, limits, any_stored = {}, {}, {}, false
  for i, lock in ipairs(locks) do
    local own = lock.own
    fences[i], slots[i] = own and own.fence or '0', own and own.slot or 0
    limits[i] = own and lock.stored_limit or 0
    any_stored = any_stored or own and lock.stored_limit
  end
  local answer = { 'GRANTED', now, fences, slots }
  if any_stored then answer[5], answer[6] = 0, limits end
  return member_answer(answer, locks)
end

-- Returns a fence (text) for each lock of the list "taken": the one that a quorum has settled on;
-- or, if the caller nests, its ancestor's, so that what checks fences takes both for one; or else a
-- new one. Writes them and counts the acquisitions. As in quick_grant(), the fences come first,
-- then the time to live, then the holder.
local function issue_fences(taken)
  local issued = {}
  for i, lock in ipairs(taken) do
    local settled = request.settled and request.settled[i]
    issued[i] = lock.parent and not settled and lock.parent.fence or new_fence(lock, i)
    make_key(lock)
    redis.call('HSET', lock.key, 'k', lock.kind, 'f', whole(lock.fence), 'a', count_acquired(lock))
    keep_key(lock, request.lease)
  end
  return issued
end

-- Makes the caller a holder of the locks of the list "taken", has it leave all queues, calls the
-- waiters that can go then, and returns the answer. It leaves the queues of "taken" first: a client
-- without the right to delete fields fails there, and holds nothing.
local function grant(taken)
  local issued = issue_fences(taken)
  for _, lock in ipairs(taken) do leave_queue(lock) end
  if mirrors then mirrors.take(locks[1], args.mirror, request.lease, request.who) end
  for i, lock in ipairs(taken) do
    -- Owners that nest in the caller may be left in the caller's own family.
    local family = lock.family or lock.families[args.owner]
    local slot -- a family has one slot for all its entries; 0: the lock is not a semaphore
    if family then
      slot = family.entries[1].slot
      remove_entries(lock, family, is_dead)
    else
      slot = request.mode == 'l' and take_slot(lock) or 0
    end
    lock.own = { deadline = now + request.lease, lease = request.lease, fence = issued[i],
                 owner = args.owner, since = request.since, mode = request.mode, slot = slot,
                 who = request.who }
    add_holder(lock, family, lock.own, limit_of(lock))
    if request.mode ~= 'x' then wake(lock, lock.parent, lock.family) end
  end
  for _, lock in ipairs(locks) do
    if not lock.own then leave_and_wake(lock) end
  end
  return answer_granted()
end

-- Replaces WHO, which tells the reason, in the caller's entry ("own"), if the request is for a
-- reservation: one that is made anew has the reason that is given now. The words before WHO stay,
-- and so does the note how long it had waited.
local function replace_reason(own)
  if not has_note(request.who, 'reserved=1') then return end
  local words_before = string.match(own.rest, '^%S+ %S+ %d+ %a %d+ ')
  local waited = string.match(own.rest, ' waited=%d+') or ''
  if words_before then own.rest = words_before .. request.who .. waited end
end

-- Answers a request that was granted before, as its answer was lost, or the message that handed the
-- lock over: renews the caller's entries in the locks of the list "taken", with another lease
-- perhaps, and returns the answer. Calls the next waiter of a lock that can be shared, which may
-- not have been called then. An entry past its deadline is good, too: another client would have
-- removed it before it took the lock.
local function repeat_grant(taken)
  if mirrors then mirrors.take(locks[1], args.mirror, request.lease, request.who) end
  for i, lock in ipairs(taken) do
    keep_key(lock, request.lease)
    if request.settled and request.settled[i] then settle(lock, lock.own, request.settled[i]) end
    lock.own.deadline, lock.own.lease = now + request.lease, request.lease
    replace_reason(lock.own)
    lock.own.rest = with_attempt(lock.own.rest)
    lock.held.longest = math.max(lock.held.longest, request.lease)
    lock.held.earliest = math.min(lock.held.earliest, lock.own.deadline)
    write_holders(lock, lock.family)
    leave_queue(lock)
    -- An owner that nests was not handed the lock, so its grant has called the next one.
    if request.mode ~= 'x' and #lock.path == 1 then wake(lock) end
  end
  return answer_granted()
end

-- The answer to a caller that holds some of the locks already: GRANTED again if it holds all that
-- it needs; otherwise ASKED, which has it release them. STALE, if it has sent a later request. nil:
-- it holds none, and others decide. Re-acquiring does not extend a lock that it was asked to
-- release, or some keys of which were taken away: only the owner knows whether it has heard of the
-- grant, so it releases the rest itself. Sets own and family of all locks (its entry, and the
-- family of that).
local function answer_owner()
  local owned, asked = {}, nil -- the locks that it holds; the number of one that it must release
  for i, lock in ipairs(locks) do
    lock.own, lock.family = find_entry(lock, args.owner)
    if lock.own then
      owned[#owned + 1] = lock
      asked = asked or has_note(lock.own.rest, 'asked=') and i
    end
    local place = lock.own_place and redis.call('HGET', lock.key, lock.own_place)
    if is_overtaken(lock.own and lock.own.rest or place or '') then return { 'STALE', now } end
  end
  local holds_all = #owned == request.needed and not asked
  if holds_all and (not mirrors or mirrors.is_held(locks[1], args.mirror)) then
    return repeat_grant(owned)
  end
  if owned[1] then
    local which = asked or owned[1].number
    local own = locks[which].own
    return member_answer({ 'ASKED', now, which, 1, math.max(own.deadline - now, 0),
                           write_entry(own) })
  end
end
