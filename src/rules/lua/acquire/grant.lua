-- Grants locks, to a newcomer or once more.
--- @include "acquire/quick_grant"
--- @include "acquire/places"
--- @include "mirror"

local mirrors = args.mirror and open_mirrors()

-- The answer GRANTED: the fence, slot and stored limit of each lock; 0 for those that --any left
-- out. It tells limits only if one is stored.
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

-- Returns a token for each lock of "taken": what a quorum has settled on; or of one that nests, its
-- ancestor's, so that what checks tokens takes both for one; or else a new one. Writes and counts
-- them. As in quick_grant(), the tokens come first, then the time to live, then the holder.
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

-- Makes the caller a holder of the locks "taken", and answers. It leaves the queues first: without
-- the right to delete fields, it holds nothing either.
local function grant(taken)
  local issued = issue_fences(taken)
  for _, lock in ipairs(taken) do leave_queue(lock) end
  if mirrors then mirrors.take(locks[1], args.mirror, request.lease, request.who) end
  for i, lock in ipairs(taken) do
    -- Owners that nest in the caller may be left in the caller's own family.
    local family = lock.family or lock.families[args.owner]
    local slot = family and family.entries[1].slot or request.mode == 'l' and take_slot(lock) or 0
    if family then remove_entries(lock, family, is_dead) end
    lock.own = { deadline = now + request.lease, lease = request.lease, fence = issued[i],
                 owner = args.owner, since = now, mode = request.mode, slot = slot,
                 who = request.who }
    add_holder(lock, family, lock.own, limit_of(lock))
    if request.mode ~= 'x' then wake(lock, lock.parent, lock.family) end
  end
  for _, lock in ipairs(locks) do
    if not lock.own then leave_and_wake(lock) end
  end
  return answer_granted()
end

-- Gives a reservation that is made anew the reason that is given now: replaces WHO in its entry.
-- The words before WHO stay, and the note how long it had waited.
local function replace_reason(own)
  local entry = has_note(request.who, 'reserved=1')
    and string.match(own.rest, '^%S+ %S+ %d+ %a %d+ ')
  if entry then own.rest = entry .. request.who .. (string.match(own.rest, ' waited=%d+') or '') end
end

-- Answers the same request again, as its answer was lost, or the message that handed the lock over:
-- renews the owner's entries, with another lease perhaps, and calls the next waiter of a lock that
-- can be shared, which was not called yet then. An entry past its deadline is good, too: another
-- client would have removed it before it took the lock.
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

-- The answer to an owner that holds some of what it asks for, or has asked later than by this
-- request; nil for any other. Sets own and family of all locks. Re-acquiring does not extend a lock
-- that it was asked to release, or of which some keys were taken away: whether it has heard of the
-- grant, only the owner knows, so it releases the rest itself.
local function answer_owner()
  local owned, asked = {}, nil
  for i, lock in ipairs(locks) do
    lock.own, lock.family = find_entry(lock, args.owner)
    if lock.own then
      owned[#owned + 1] = lock
      asked = asked or has_note(lock.own.rest, 'asked=') and i
    end
    local place = lock.place and redis.call('HGET', lock.key, lock.place)
    if is_overtaken(lock.own and lock.own.rest or place or '') then return { 'STALE', now } end
  end
  if #owned == request.needed and not asked
    and (not mirrors or mirrors.is_held(locks[1], args.mirror)) then
    return repeat_grant(owned)
  end
  if owned[1] then
    local which = asked or owned[1].number
    local own = locks[which].own
    return member_answer({ 'ASKED', now, which, 1, math.max(own.deadline - now, 0),
                           write_entry(own) })
  end
end
