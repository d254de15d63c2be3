-- The holders of a lock, whom they keep out, and who is called when that changes.
--- @include "families"
--- @include "fence"
--- @include "memory"
--- @include "queue"
--- @include "slots"

local FEW = 50    -- holders and waiters
local REACH = 100 -- tickets that one call looks at to find whom to call

-- Counts one more acquisition in lock.acquired. Returns its new text, which the caller writes to
-- the field a.
local function count_acquired(lock)
  lock.acquired = whole((number(lock.acquired) or 0) + 1)
  return lock.acquired
end

-- Counts a request that leaves without the lock, in the field n:refused. A lock that was never
-- acquired may have no key, and a count should not make one. A full server does not count it
-- (pcall).
local function count_refusal(lock)
  if lock.fence == 0 then return end
  redis.pcall('HSET', lock.key, next_tally(lock, 'refused', now_text))
end

-- The mode in which a family keeps others out: s if all its entries are shared, otherwise that of
-- the first one that is not.
local function mode_of(family)
  for _, entry in ipairs(family.entries) do
    if entry.mode ~= 's' then return entry.mode end
  end
  return 's'
end

-- Bars an owner from acquiring for so many ms, and writes that to the field t. name: the owner, as
-- that field has it: OWNER, OWNER/N or !OWNER. The bars that have ended are dropped, so that the
-- field does not grow, and so is a former one of the same name.
local function note_barred(lock, name, ms)
  local barred = name .. '=' .. whole(now + ms) .. ';'
  for other, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    if tonumber(deadline) > now and other ~= name then
      barred = barred .. other .. '=' .. deadline .. ';'
    end
  end
  lock.barred = barred
  redis.call('HSET', lock.key, 't', barred, 'k', lock.kind)
end

-- Whether the lock was taken away from the owner: then the owner must not claim that the server has
-- forgotten its entry. force.lua has barred it as !OWNER.
local function was_taken_away(lock, owner)
  return string.find(';' .. lock.barred, ';!' .. owner .. '=', 1, true) ~= nil
end

-- Removes those entries of the family for which is_gone(entry) is true, and remembers their runs,
-- which have ended as entry.ended says; an entry without that was found dead. Returns whether any
-- was removed; then the caller writes the family.
local function remove_entries(lock, family, is_gone)
  local left = {}
  for _, entry in ipairs(family.entries) do
    if is_gone(entry) then
      -- Waiters that were to nest in this holder must wait for what it nested in itself.
      local queue = queue_below(lock, entry)
      if queue.first <= queue.last then empty_queue(lock, queue) end
      remember(lock, family, entry, entry.ended or 'expired=1')
    else
      left[#left + 1] = entry
    end
  end
  local changed = #left < #family.entries
  family.entries = left
  return changed
end

-- All families that hold the lock; nil if one cannot be read. Of an only one the name is known: to
-- find several, the server passes over all fields, so the cost grows with holders and waiters.
-- Families that this call has read already are returned as they are, since it may have changed
-- them.
local function all_families(lock)
  local held = lock.held
  local only = held.count == 1 and redis.call('HGET', lock.key, 'h:' .. held.oldest)
  -- The names of fields, and behind each its text.
  local fields = only and { 'h:' .. held.oldest, only } or redis.call('HGETALL', lock.key)
  local families = {}
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^h:(.+)$')
    local family = name and (lock.families[name] or read_family(name, fields[i + 1]))
    if name and not family then return nil end
    if family then families[#families + 1] = family end
  end
  return families
end

-- The name of the family that has held the lock for longest: the one whose first entry has the
-- lowest fence, as fences are in the order of acquisition whatever the clock does; '-' if there is
-- none.
local function oldest_of(families)
  local lowest, name = math.huge, '-'
  for _, family in ipairs(families) do
    local first = family.entries[1]
    local fence = first and tonumber(first.fence)
    if fence and fence < lowest then lowest, name = fence, family.name end
  end
  return name
end

-- Shortens those leases of the family that end later than if they began now: a clock that was set
-- back must not stretch a dead holder's lease. Returns whether there were any; then the caller
-- writes the family.
local function shorten_leases(family)
  local has_shortened = false
  for _, entry in ipairs(family.entries) do
    if entry.deadline > now + entry.lease then
      entry.deadline, has_shortened = now + entry.lease, true
    end
  end
  return has_shortened
end

-- Adds a family to `held`, which prune() makes anew out of all families, and marks the slots of its
-- entries in lock.slots. An empty family adds nothing.
local function add_to_held(lock, held, family)
  for _, entry in ipairs(family.entries) do
    held.earliest = math.min(held.earliest, entry.deadline)
    held.longest = math.max(held.longest, entry.lease)
    if entry.mode ~= 's' then held.mode = entry.mode end
    if entry.slot > 0 then mark_slot(lock, entry.slot, 1) end
  end
  if #family.entries > 0 then held.count = held.count + 1 end
end

-- Looks at all holders: removes the dead ones, and makes lock.held and lock.slots anew from those
-- that are left, and writes them. If one cannot be read, sets lock.damaged and leaves the lock as
-- it is.
local function prune(lock)
  local families = all_families(lock)
  if not families then
    lock.damaged = true
    return
  end
  local held = { mode = 's', limit = lock.held.limit, count = 0, earliest = math.huge, longest = 0 }
  lock.slots = ''
  for _, family in ipairs(families) do
    local shortened = shorten_leases(family)
    if remove_entries(lock, family, is_dead) or shortened then write_family(lock, family) end
    add_to_held(lock, held, family)
  end
  held.oldest = oldest_of(families)
  lock.held = held.count > 0 and held or nil
  if lock.held then
    redis.call('HSET', lock.key, 's', state_text(held))
    if lock.slots ~= '' then redis.call('HSET', lock.key, 'b', lock.slots) end
  else
    redis.call('HDEL', lock.key, 's', 'b')
    lock.slots = ''
  end
end

-- Removes the dead holders, so that lock.held tells only of live ones. Mostly none can be dead, and
-- this costs nothing.
local function refresh(lock)
  if lock.held and is_in_doubt(lock.held) then prune(lock) end
end

-- The line, as h:OWNER has it, of the holder that has held the lock for longest, to be shown to
-- people; '' if that is not known and holders and waiters are not FEW, as finding it passes over
-- all of them. The family that was found is noted; a full server need not (pcall).
local function line_of_oldest(lock)
  local held = lock.held
  local holders_and_waiters = held.count + lock.queue.last - lock.queue.first
  if held.oldest == '-' and holders_and_waiters < FEW then
    held.oldest = oldest_of(all_families(lock) or {})
    redis.pcall('HSET', lock.key, 's', state_text(held))
  end
  return string.match(redis.call('HGET', lock.key, 'h:' .. held.oldest) or '', '^[^\n]*')
end

-- All holders as an obstacle, the table that obstacle() returns: how many they are ("count"), the
-- time before which all of them live ("till"), and the line of the oldest ("shown").
local function all_as_obstacle(lock)
  return { count = lock.held.count, till = lock.held.earliest, shown = line_of_oldest(lock) }
end

-- The obstacle to a newcomer of that mode that nests in the holder "parent": the live owners of the
-- same family that nest there already, except readers where the newcomer is one. The table is that
-- of obstacle(); nil if no owner keeps it out.
local function obstacle_beside(mode, parent, family)
  local found = { count = 0, till = math.huge, shown = '' }
  for _, entry in ipairs(family.entries) do
    local is_beside = nests_in(entry.owner, parent.owner) and not is_dead(entry)
    local can_share = mode == 's' and entry.mode == 's'
    if is_beside and not can_share then
      found.count, found.till = found.count + 1, math.min(found.till, entry.deadline)
      if found.count == 1 then found.shown = write_entry(entry) end
    end
  end
  return found.count > 0 and found or nil
end

-- The obstacle that keeps a newcomer of that mode out; nil: there is none. It is a table: "count",
-- how many holders; "till", the time (ms) before which all of them live; "shown", one of them as
-- text; and "closed" if no newcomer is let in, held or not, because of a pause or a limit of 0.
-- Removes dead holders first. parent, family: the newcomer's ancestor that holds the lock, and its
-- family: then only those keep it out that nest in that, too; nil: it does not nest.
local function obstacle(lock, mode, parent, family)
  if parent then return obstacle_beside(mode, parent, family) end
  -- Also where there is room: a dead one's slot is the next one's, and dead readers would gather.
  refresh(lock)
  -- A pause, or a limit of 0, keeps newcomers out; the holders may leave.
  if lock.paused or lock.stored_limit == 0 then
    return { count = 0, till = now, shown = '', closed = true }
  end
  if has_room(lock.held, mode) then return nil end
  return all_as_obstacle(lock)
end

-- Returns the three elements by which an answer tells of the obstacle "found": how many holders,
-- the ms until the first may be dead, and the oldest as text; 0, 0 and '' if "found" is nil.
local function describe_obstacle(found)
  if not found then return 0, 0, '' end
  return found.count, math.max(found.till - now, 0), found.shown
end

-- Returns the three elements by which an answer tells of the present holders, whether they are in
-- somebody's way or not: as describe_obstacle().
local function describe_present(lock)
  if lock.held then refresh(lock) end
  return describe_obstacle(lock.held and all_as_obstacle(lock))
end

-- Whether the entry's holder is a live process that hears when it is asked to release the lock: its
-- note hears=1 says so. A lock that --at-least keeps (kept=1) has no process any more.
local function can_be_asked(entry)
  return not is_dead(entry) and has_note(entry.rest, 'hears=1')
    and not has_note(entry.rest, 'kept=1')
end

-- Asks the holder that has this entry of the family to release the lock: adds the note asked=WHEN
-- and "notes" (by whom, and why; '' if unknown), and has it call. It is asked only once. An entry
-- with that note is not renewed (renew.lua), so the holder ends no later than its present lease.
local function ask_holder(lock, family, entry, notes)
  if has_note(entry.rest, 'asked=') then return end
  entry.rest = entry.rest .. ' asked=' .. whole(now) .. (notes ~= '' and ' ' or '') .. notes
  write_family(lock, family)
  notify(lock, entry)
end

-- Calls the first live waiter of the queue that nests in some holder and waits for this key, if
-- nothing keeps it out. It is for a queue whose first waiter waits only for another of its keys:
-- one that nests may pass that (find_turn() of acquire/decide.lua has the reason). Only REACH
-- tickets are looked at: a waiter that is not called here finds out by its next heartbeat. parent,
-- family: as of obstacle(), of the waiters of this queue.
local function wake_passing(lock, queue, parent, family)
  for ticket = queue.first, math.min(queue.last, queue.first + REACH) do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    local is_waiting = waiter and waiter.deadline > now and not waiter.elsewhere
      and waiter.owner ~= lock.owner
    if is_waiting and string.find(waiter.owner, '.', 1, true) then
      if not obstacle(lock, waiter.mode, parent, family) then notify(lock, waiter) end
      return
    end
  end
end

-- Adds a holder to the lock: its entry to this family, or, if that is nil, to a new one. Changes
-- lock.held, and writes that and the family. The entry has "who" instead of "rest", which is made
-- here. limit: of the semaphore, if the lock was free.
local function add_holder(lock, family, entry, limit)
  local held = lock.held
    or { mode = entry.mode, limit = limit, count = 0, earliest = math.huge, longest = 0 }
  entry.rest = string.format('%s %s %.0f %s %.0f ', entry.fence, entry.owner, entry.since,
    entry.mode, entry.slot) .. entry.who
  if not family then
    family = { name = entry.owner, entries = {} }
    held.count, held.oldest = held.count + 1, held.oldest or entry.owner
  end
  family.entries[#family.entries + 1] = entry
  held.earliest = math.min(held.earliest, entry.deadline)
  held.longest = math.max(held.longest, entry.lease)
  lock.held = held
  write_holders(lock, family)
end

-- The terms on which a waiter has offered to take the lock by message, if it can be handed over on
-- them now; nil if not. It can if there is room, the limit is that of the others, and no owner that
-- nests in the waiter still holds the lock, whose family it would have to join. Returns the "token"
-- of the message, the "limit", the "lease" (ms), and "till", when that ends: not later than if it
-- began now.
local function usable_offer(lock, waiter)
  local token, limit, till, lease =
    string.match(waiter.offer or '', '^([%w_-]+)/(%d+)/(%d+)/(%d+)$')
  limit, till, lease = number(limit), number(till), number(lease)
  if not (limit and till and lease) then return nil end
  if lock.stored_limit and lock.stored_limit ~= limit then return nil end
  if lock.held and (not has_room(lock.held, waiter.mode) or lock.held.limit ~= limit) then
    return nil
  end
  if redis.call('HEXISTS', lock.key, 'h:' .. waiter.owner) == 1 then return nil end
  return { token = token, limit = limit, lease = lease, till = math.min(till, now + lease) }
end

-- WHO of a waiter that becomes a holder, as its entry has it: with the note waited=MS, how long it
-- has waited in all, before it had this place and since; and without its number in a list.
local function note_waited(waiter)
  local five_words, notes = string.match(waiter.who, '^(%S+ %S+ %S+ %S+ %S+)(.*)$')
  local before = number(string.match(notes, ' waited=(%d+)')) or 0
  local waited = before + math.max(now - (number(waiter.since) or now), 0)
  notes = string.gsub(string.gsub(notes, ' waited=%d+', ''), ' rank=%S+', '')
  return five_words .. notes .. ' waited=' .. whole(waited)
end

-- Hands the lock over to the waiter: makes it a holder and sends it the token, fence and slot.
-- offer: of usable_offer(). The lease counts from the heartbeat with which the waiter sent the
-- token, so it knows by its own clock how long it may rely on it. The message is all it needs to
-- start, and then it renews. If the message is lost, its next heartbeat has the same result, as
-- after a lost answer. Changes queue.first, which the caller writes.
local function hand_over(lock, queue, waiter, offer)
  local fence = next_fence(lock)
  redis.call('HSET', lock.key, 'k', lock.kind, 'f', fence, 'a', count_acquired(lock))
  keep_key(lock, offer.lease)
  local slot = waiter.mode == 'l' and take_slot(lock) or 0
  local entry = { deadline = offer.till, lease = offer.lease, fence = fence, owner = waiter.owner,
                  since = now, mode = waiter.mode, slot = slot, who = note_waited(waiter) }
  add_holder(lock, nil, entry, offer.limit)
  clear_place(lock, place_of(queue, waiter.ticket), waiter)
  if queue.first == waiter.ticket then queue.first = waiter.ticket + 1 end
  publish(lock, waiter, offer.token .. ' ' .. fence .. ' ' .. whole(slot))
end

-- How many waiters of a line may be called now, which share the lock in that mode, s or l: two, but
-- of a semaphore no more than its free slots, less the waiters that were called and have not come.
-- A semaphore that is free has the limit that it had; waiters that nest in "parent" share its one
-- slot.
local function room_to_call(lock, mode, line, parent)
  local AT_ONCE = 2
  if mode == 's' then return AT_ONCE end
  local limit, taken = 1, 0
  if not parent then
    limit = lock.held and lock.held.limit or lock.limit or 1
    taken = lock.held and lock.held.count or 0
  end
  local coming = math.max(line.called - line.first + 1, 0)
  return math.min(AT_ONCE, math.max(limit, 1) - taken - coming)
end

-- Calls, each by call(waiter), as many waiters of a line as "room" says: those that come next
-- behind the ones that were called, as far as they share the lock in that mode. Notes in
-- line.called how far that is. A waiter that waits for another of its keys is passed over: it is
-- called there. In a queue that has lists, waiters behind the first have their turn by the lists,
-- unless they have waited for too long as well.
local function call_next(lock, queue, line, mode, room, call)
  local goes_by_lists = line == queue and queue.base == 'q' and next(lists_of(lock))
  local position = math.max(line.called + 1, line.first)
  local last = math.min(line.last, position + REACH)
  while room > 0 and position <= last do
    local ticket = ticket_at(lock, line, position)
    local waiter = ticket and waiter_at(lock, queue, ticket)
    if waiter then
      -- The present caller does not listen yet: the one that comes before it calls it.
      if waiter.mode ~= mode or waiter.owner == lock.owner then return end
      if goes_by_lists and not is_overdue(lock, waiter) then return end
      line.called = position
      if not waiter.elsewhere then
        call(waiter)
        room = room - 1
      end
    end
    position = position + 1
  end
end

-- Calls the waiters that can go now, so that they ask for the lock at once: the first in turn; or,
-- if waiters can share the lock, two, of which each calls the next one when it has come: so all
-- come soon, and no call takes long. A waiter that has offered to take the lock by message is
-- handed it instead, unless only_notify is set. The first is not called if its place is kept beyond
-- the time known_beyond (ms): it has just called, and knows. parent: the entry of a holder, whose
-- nested waiters are called; family: that of the entry. Both are nil: all others are called.
local function wake(lock, parent, family, only_notify, known_beyond)
  local queue = queue_below(lock, parent)
  local head, line = first_in_turn(lock, queue)
  local is_known = head and head.owner ~= '' -- a later call finds out who is first
  if not is_known or head.owner == lock.owner then return end
  if head.elsewhere then wake_passing(lock, queue, parent, family) end
  if known_beyond and head.deadline > known_beyond then return end
  if obstacle(lock, head.mode, parent, family) then return end
  local first_before, called_before = queue.first, line.called

  -- Hands the lock over to the waiter if that can be, or else has it ask.
  local function call(waiter)
    local offer = not only_notify and not parent and usable_offer(lock, waiter)
    if offer then hand_over(lock, queue, waiter, offer) else notify(lock, waiter) end
  end

  if head.mode ~= 'x' then
    call_next(lock, queue, line, head.mode, room_to_call(lock, head.mode, line, parent), call)
  elseif not head.elsewhere then
    call(head)
  end
  -- hand_over() may have changed queue.first, and call_next() line.called.
  local has_called = line.called ~= called_before
  if queue.first ~= first_before or has_called and line == queue then write_queue(lock, queue) end
  if has_called and line ~= queue then write_lists(lock) end
end

-- Wakes the waiters that can go after "owner", an entry of "family", has left the lock: those that
-- nest in its nearest ancestor, if that holds the lock. The others are woken, too, if there is no
-- such ancestor, or if what is left of the family is in another mode than mode_before: it may be
-- shared now, and let readers in. family: nil if the owner held nothing; mode_before: nil if the
-- mode has not changed.
local function wake_after(lock, owner, family, mode_before)
  local parent
  for _, entry in ipairs(family and family.entries or {}) do
    local is_nearer = nests_in(owner, entry.owner)
      and (not parent or #entry.owner > #parent.owner)
    if is_nearer and not is_dead(entry) then parent = entry end
  end
  if parent then wake(lock, parent, family) end
  if not parent or mode_before and mode_before ~= mode_of(family) then wake(lock) end
end

-- Removes a holder from its family, and the dead ones besides; changes and writes the family,
-- lock.held and the slots. Returns the mode that the family had, for wake_after(): what is left of
-- it may be less exclusive. held.earliest and held.longest stay as they are, which only makes
-- others look once more, and the next oldest family is found when somebody asks.
local function remove(lock, entry, family)
  local mode_before, first = mode_of(family), family.entries[1]
  remove_entries(lock, family, function(other) return other == entry or is_dead(other) end)
  local held, next_first = lock.held, family.entries[1]
  -- An ancestor that came after its descendant has a higher fence than that.
  if held.oldest == family.name and not (next_first and next_first.fence == first.fence) then
    held.oldest = '-'
  end
  if not next_first then
    held.count = held.count - 1
    if held.count <= 0 then lock.held = nil end
  elseif held.mode ~= 'l' then
    held.mode = mode_of(family)
  end
  write_holders(lock, family)
  if lock.held and entry.slot > 0 and #family.entries == 0 then
    free_slot(lock, entry.slot)
  end
  return mode_before
end
