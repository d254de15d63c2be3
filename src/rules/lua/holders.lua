-- The holders of a lock, whom they keep out, and who is called when that changes.
--- @include "families"
--- @include "fence"
--- @include "memory"
--- @include "queue"
--- @include "slots"

local FEW = 50    -- holders and waiters
local REACH = 100 -- tickets that one call looks at to find whom to call

-- Counts one more acquisition. Returns the new text of the field a.
local function count_acquired(lock)
  lock.acquired = whole((number(lock.acquired) or 0) + 1)
  return lock.acquired
end

-- Counts a request that leaves without the lock. A lock that was never acquired may have no key,
-- and a count should not make one.
local function count_refusal(lock)
  if lock.fence == 0 then return end
  redis.pcall('HSET', lock.key, next_tally(lock, 'refused', now_text))
end

-- The mode in which a family keeps others out: shared if all of it is.
local function mode_of(family)
  for _, e in ipairs(family.entries) do
    if e.mode ~= 's' then return e.mode end
  end
  return 's'
end

-- Bars the owner, called "name" as in the field t, from acquiring for so many ms. The bars that
-- have ended are dropped, so that the field does not grow.
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

-- Removes the entries e of the family for which is_gone(e) is true, and remembers their runs.
-- "ended" of an entry tells how it ended; without one it is dead. Returns whether any was removed.
-- The caller writes the family.
local function remove_entries(lock, family, is_gone)
  local left = {}
  for _, e in ipairs(family.entries) do
    if is_gone(e) then
      -- The waiters for a holder that is gone wait for those that it nested in.
      local queue = queue_below(lock, e)
      if queue.first <= queue.last then empty_queue(lock, queue) end
      remember(lock, family, e, e.ended or 'expired=1')
    else
      left[#left + 1] = e
    end
  end
  local changed = #left < #family.entries
  family.entries = left
  return changed
end

-- All families that hold the lock; nil if one cannot be read. The field of an only one is known: to
-- find several, the server passes over all fields. Families that the call has read already are
-- returned as they are, since it may have changed them.
local function all_families(lock)
  local only = lock.held.count == 1 and redis.call('HGET', lock.key, 'h:' .. lock.held.oldest)
  local fields = only and { 'h:' .. lock.held.oldest, only } or redis.call('HGETALL', lock.key)
  local families = {}
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^h:(.+)$')
    local family = name and (lock.families[name] or read_family(name, fields[i + 1]))
    if name and not family then return nil end
    if family then families[#families + 1] = family end
  end
  return families
end

-- The name of the family that has held the lock for longest: tokens are in the order of acquisition
-- whatever the clock does.
local function oldest_of(families)
  local lowest, name = math.huge, '-'
  for _, family in ipairs(families) do
    local e = family.entries[1]
    if e and tonumber(e.fence) < lowest then lowest, name = tonumber(e.fence), family.name end
  end
  return name
end

-- Shortens those leases of the family that end later than if they began now: a clock that was set
-- back must not stretch a dead holder's lease. Returns whether there were any, to be written.
local function shorten_leases(family)
  local any = false
  for _, e in ipairs(family.entries) do
    if e.deadline > now + e.lease then
      e.deadline, any = now + e.lease, true
    end
  end
  return any
end

-- Adds the holders of a family to held, which becomes the new lock.held, and marks their slots in
-- lock.slots.
local function add_to_held(lock, held, family)
  for _, e in ipairs(family.entries) do
    held.earliest = math.min(held.earliest, e.deadline)
    held.longest = math.max(held.longest, e.lease)
    if e.mode ~= 's' then held.mode = e.mode end
    if e.slot > 0 then mark_slot(lock, e.slot, 1) end
  end
  if #family.entries > 0 then held.count = held.count + 1 end
end

-- Looks at all holders: removes the dead ones, and makes lock.held and lock.slots anew from those
-- that are left. If one cannot be read, sets lock.damaged and leaves the lock as it is.
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

-- Looks at the holders if one of them may be dead; mostly none is, and this costs nothing.
local function refresh(lock)
  if lock.held and is_in_doubt(lock.held) then prune(lock) end
end

-- The line of the holder that has held it for longest; '' if finding it takes more than a look at a
-- few. A full server need not keep what was found: it is only for people.
local function line_of_oldest(lock)
  local held = lock.held
  if held.oldest == '-' and held.count + lock.queue.last - lock.queue.first < FEW then
    held.oldest = oldest_of(all_families(lock) or {})
    redis.pcall('HSET', lock.key, 's', state_text(held))
  end
  return string.match(redis.call('HGET', lock.key, 'h:' .. held.oldest) or '', '^[^\n]*')
end

-- All holders: how many, before which time all of them live, and the line of the oldest.
local function all_as_obstacle(lock)
  return { count = lock.held.count, till = lock.held.earliest, shown = line_of_oldest(lock) }
end

-- The owners of the family that nest in "parent", as the newcomer will, and keep it out: all but
-- readers beside a reader. In the form of all_as_obstacle(); nil if there are none.
local function obstacle_beside(mode, parent, family)
  local found = { count = 0, till = math.huge, shown = '' }
  for _, e in ipairs(family.entries) do
    local beside = nests_in(e.owner, parent.owner) and not is_dead(e)
    if beside and not (mode == 's' and e.mode == 's') then
      found.count, found.till = found.count + 1, math.min(found.till, e.deadline)
      if found.count == 1 then found.shown = write_entry(e) end
    end
  end
  return found.count > 0 and found or nil
end

-- The obstacle to a newcomer of that mode: holders, in the form of all_as_obstacle(), or a pause;
-- nil if nothing does. Removes dead holders before it says so. parent, family: the newcomer's
-- ancestor that holds the lock, and its family: then only those count that nest in it. "closed": no
-- newcomer is let in, whether the lock is held or not.
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

-- The obstacle in the words of a refusal: how many holders, the ms until the first may be dead, and
-- the oldest as text; 0, 0 and '' where nothing is in the way.
local function describe_obstacle(found)
  if not found then return 0, 0, '' end
  return found.count, math.max(found.till - now, 0), found.shown
end

-- The present holders, in the words of describe_obstacle().
local function describe_present(lock)
  if lock.held then refresh(lock) end
  return describe_obstacle(lock.held and all_as_obstacle(lock))
end

-- Whether the entry's holder is a process that hears when it is asked to release the lock. What
-- --at-least keeps has no process any more.
local function can_be_asked(e)
  return not is_dead(e) and has_note(e.rest, 'hears=1')
    and not has_note(e.rest, 'kept=1')
end

-- Asks a holder to release the lock, once; notes: by whom, and why. An entry with the note is not
-- renewed (renew.lua), so the holder ends no later than its present lease.
local function ask_holder(lock, family, e, notes)
  if has_note(e.rest, 'asked=') then return end
  e.rest = e.rest .. ' asked=' .. whole(now) .. (notes ~= '' and ' ' or '') .. notes
  write_family(lock, family)
  notify(lock, e)
end

-- While the first one waits for another of its keys: calls the first waiter that nests, which may
-- pass it (find_turn() of acquire/decide.lua has the reason). Only REACH tickets are looked at: one
-- that is not called here finds out by its next heartbeat.
local function wake_passing(lock, queue, parent, family)
  for ticket = queue.first, math.min(queue.last, queue.first + REACH) do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    if waiter and waiter.deadline > now and not waiter.elsewhere and waiter.owner ~= lock.owner
      and string.find(waiter.owner, '.', 1, true) then
      if not obstacle(lock, waiter.mode, parent, family) then notify(lock, waiter) end
      return
    end
  end
end

-- Adds a holder, whose entry is e, with "who" in place of "rest": in a new family, or in this one.
-- Changes and writes lock.held. limit: of the semaphore, if the lock was free.
local function add_holder(lock, family, e, limit)
  local held = lock.held
    or { mode = e.mode, limit = limit, count = 0, earliest = math.huge, longest = 0 }
  e.rest = string.format('%s %s %.0f %s %.0f ', e.fence, e.owner, e.since, e.mode, e.slot) .. e.who
  if not family then
    family = { name = e.owner, entries = {} }
    held.count, held.oldest = held.count + 1, held.oldest or e.owner
  end
  family.entries[#family.entries + 1] = e
  held.earliest = math.min(held.earliest, e.deadline)
  held.longest = math.max(held.longest, e.lease)
  lock.held = held
  write_holders(lock, family)
end

-- The offer of a waiter, if the lock can be handed over to it: there is room for it, with the same
-- limit as others, and it has not left behind a holder that nests in it, whose family it would
-- join.
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

-- WHO of the waiter as it is written in the entry of a holder: with the note of how long it has
-- waited, before it had a place and since, and without its number in a list.
local function note_waited(waiter)
  local words, notes = string.match(waiter.who, '^(%S+ %S+ %S+ %S+ %S+)(.*)$')
  local before = number(string.match(notes, ' waited=(%d+)')) or 0
  local waited = before + math.max(now - (number(waiter.since) or now), 0)
  notes = string.gsub(string.gsub(notes, ' waited=%d+', ''), ' rank=%S+', '')
  return words .. notes .. ' waited=' .. whole(waited)
end

-- Makes the waiter a holder, for a time that counts from the heartbeat that the token came with: so
-- the waiter knows by its own clock how long it may rely on it. The message is all it needs to
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

-- How many waiters of the mode s or l may be called now: two, but of a semaphore no more than its
-- free slots, less those that were called and have not come. If it is free now, the limit counts as
-- it was; below a parent there is one slot.
local function room_to_call(lock, mode, line, parent)
  if mode == 's' then return 2 end
  local limit = not parent and (lock.held and lock.held.limit or lock.limit) or 1
  local taken = not parent and lock.held and lock.held.count or 0
  local coming = math.max(line.called - line.first + 1, 0)
  return math.min(2, math.max(limit, 1) - taken - coming)
end

-- Calls, by call(), the next "room" waiters of a line behind those that were called, if they share
-- the lock in that mode, and notes the last one as line.called. One that waits for another of its
-- keys is passed over: it is called there. In a queue that has lists, those behind the first have
-- their turn by the lists, unless they have waited for too long as well.
local function call_next(lock, queue, line, mode, room, call)
  local by_lists = line == queue and queue.base == 'q' and next(lists_of(lock))
  local n = math.max(line.called + 1, line.first)
  local last = math.min(line.last, n + REACH)
  while room > 0 and n <= last do
    local ticket = ticket_at(lock, line, n)
    local waiter = ticket and waiter_at(lock, queue, ticket)
    if waiter then
      -- The present caller does not listen yet: the one that comes before it calls it.
      if waiter.mode ~= mode or waiter.owner == lock.owner then return end
      if by_lists and not is_overdue(lock, waiter) then return end
      line.called = n
      if not waiter.elsewhere then
        call(waiter)
        room = room - 1
      end
    end
    n = n + 1
  end
end

-- Calls the waiters that can go now: the first one, or of several that can go together two, of
-- which each calls the next one when it has come: so all come soon, and no call takes long. A
-- waiter that offers it is handed the lock, unless only_notify is set. The first is not called if
-- its place is kept beyond known_beyond, as it has just called and knows. parent, family: as of
-- obstacle(), of the waiters that nest in that holder; nil: of all others.
local function wake(lock, parent, family, only_notify, known_beyond)
  local queue = queue_below(lock, parent)
  local head, line = first_in_turn(lock, queue)
  if not head or head.owner == '' or head.owner == lock.owner then return end
  if head.elsewhere then wake_passing(lock, queue, parent, family) end
  if known_beyond and head.deadline > known_beyond then return end
  if obstacle(lock, head.mode, parent, family) then return end
  local first, called = queue.first, line.called

  local function call(waiter)
    local offer = not only_notify and not parent and usable_offer(lock, waiter)
    if offer then hand_over(lock, queue, waiter, offer) else notify(lock, waiter) end
  end

  if head.mode ~= 'x' then
    call_next(lock, queue, line, head.mode, room_to_call(lock, head.mode, line, parent), call)
  elseif not head.elsewhere then
    call(head)
  end
  if line == queue and line.called ~= called or queue.first ~= first then
    write_queue(lock, queue)
  end
  if line ~= queue and line.called ~= called then write_lists(lock) end
end

-- Calls the next waiters after "owner", which was in "family", has left: those that nest in its
-- nearest ancestor; and those outside, where it had none, or the mode of the family is not
-- "mode_before" any more (nil: it is): what is left may let readers in.
local function wake_after(lock, owner, family, mode_before)
  local parent
  for _, e in ipairs(family and family.entries or {}) do
    local nearer = nests_in(owner, e.owner) and (not parent or #e.owner > #parent.owner)
    if nearer and not is_dead(e) then parent = e end
  end
  if parent then wake(lock, parent, family) end
  if not parent or mode_before and mode_before ~= mode_of(family) then wake(lock) end
end

-- Removes a holder, and the dead ones of its family; changes and writes lock.held. Returns the mode
-- that the family had: what is left of it may be less exclusive. "earliest" and "longest" stay,
-- which only makes others look once more, and the next oldest family is found when somebody asks.
local function remove(lock, e, family)
  local mode = mode_of(family)
  remove_entries(lock, family, function(other) return other == e or is_dead(other) end)
  local held = lock.held
  if #family.entries == 0 then
    held.count = held.count - 1
    if held.oldest == family.name then held.oldest = '-' end
    if held.count <= 0 then lock.held = nil end
  elseif held.mode ~= 'l' then
    held.mode = mode_of(family)
  end
  write_holders(lock, family)
  if lock.held and e.slot > 0 and #family.entries == 0 then
    free_slot(lock, e.slot)
  end
  return mode
end
