-- The decision of acquire.lua about each lock.
--- @include "acquire/places"
--- @include "acquire/grant"

-- Turns -------------------------------------------------------------------------------------------

-- How many waiters of a list have come later than the caller: those with higher tickets, which are
-- at its end. Only its last COUNTED positions are looked at, as a call must not take long: if all
-- of them came later, all of the list counts.
local function count_later(lock, list)
  -- Whether the waiter at that position came later than the caller; a hole did not.
  local function is_later(position)
    local ticket = ticket_at(lock, list, position)
    return ticket and ticket > lock.queue.mine
  end
  local position = math.max(list.first, list.last - COUNTED + 1)
  if position > list.first and is_later(position) then return list.last - list.first + 1 end
  while position <= list.last and not is_later(position) do position = position + 1 end
  return count_in_use(lock, list, position, list.last)
end

-- The caller's position among the waiters of the lock, for people; 1: it is first. One in a list
-- comes behind the lists of higher priorities, and those before it in its own list. One in no list
-- (its priority is 0, and no other's is lower) comes behind the tickets before its own, and those
-- of the lists that have come later.
local function position_in(lock)
  local queue = lock.queue
  if lock.turn.is_first then return 1 end
  local lists, before = queue.base == 'q' and lists_of(lock) or {}, 0
  for above = priority + 1, HIGHEST do
    local list = lists[above]
    if list and lock.listed then
      before = before + count_in_use(lock, list, list.first, list.last)
    elseif list then
      before = before + count_later(lock, list)
    end
  end
  local list = lock.listed and lists[priority]
  if not list then return before + count_in_use(lock, queue, queue.first, queue.mine) end
  local position = before + count_in_use(lock, list, list.first, lock.listed)
  -- A waiter that has waited for too long comes first as well.
  return math.max(position, lock.turn.late and 2 or 1)
end

-- Whether the caller, a waiter, can go with the first one, since they share the lock: both have the
-- same mode, which is not exclusive, stand in the same line, and were called. A reader may also be
-- the next one behind those that were called, as these may never come; where lists say who is next,
-- it may not. first, line: the waiter whose turn it is, and its line, as of first_in_turn().
local function goes_along(lock, first, line)
  local queue = lock.queue
  if request.mode == 'x' or not queue.mine or first.mode ~= request.mode then return false end
  local own_list = lock.listed and priority or nil
  if line.priority ~= own_list then return false end
  local goes_by_lists = line == queue and queue.base == 'q' and next(lists_of(lock))
  local beyond = request.mode == 's' and not goes_by_lists and 1 or 0
  local position = lock.listed or queue.mine
  return position <= line.called + beyond
end

-- Whether the caller is a newcomer with a higher priority than the waiter whose turn it is, so that
-- it comes before that. If the first waiter's line is the queue, not a list, its priority is 0, and
-- no newcomer passes it once it has waited for too long. Waiters that nest, which are in a queue
-- other than q, have no priorities; and where it is not known yet who is first, no newcomer comes
-- before it. first, line: as of first_in_turn().
local function outranks(lock, first, line)
  local queue = lock.queue
  local is_newcomer, is_known = not queue.mine, first.owner ~= ''
  if not is_newcomer or not is_known or queue.base ~= 'q' then return false end
  if priority <= (line.priority or 0) then return false end
  return line.priority or not is_overdue(lock, first, bound)
end

-- Finds out whose turn it is. Returns a table: "first", the waiter whose turn it is, or nil;
-- "is_first", whether that is the caller; "late", whether it is another one that has waited for too
-- long; and "next", whether no waiter comes before the caller. A caller that nests passes a first
-- one that waits for another of its keys, and all behind that: it may be a key of the caller's
-- ancestors, and then all would wait for each other.
local function find_turn(lock)
  local queue, place_ttl = lock.queue, request.place_ttl > 0 and request.place_ttl
  local first, line = first_in_turn(lock, queue, place_ttl, bound)
  if not first then return { next = true } end
  local is_first = queue.mine and first.ticket == queue.mine
  -- The first waiter of the queue q is the oldest of all; without "who" it is not known yet.
  local is_oldest = line == queue and line.base == 'q' and first.who
  return {
    first = first, is_first = is_first,
    late = not is_first and is_oldest and is_overdue(lock, first, bound),
    next = is_first or goes_along(lock, first, line) or outranks(lock, first, line)
      or #lock.path > 1 and first.elsewhere,
  }
end

-- Groups ------------------------------------------------------------------------------------------

-- Only the last waiter of a group waits: the one that queued up before it is sent away.
local SENT_AWAY = 64 -- are told so, however late they ask

-- Returns the other waiter of the caller's group that has a place in its queue, dead or alive, and
-- that place; nil if there is none. It is found by the field of the group, which has its owner (its
-- name is that of the queue, so any place will do), and by the field w:OWNER, which has its place.
local function rival_in_group(lock)
  local field = group_field(lock, place_of(lock.queue, 0), request.who)
  local owner = redis.call('HGET', lock.key, field)
  if not owner or owner == args.owner then return nil end
  local place = redis.call('HGET', lock.key, 'w:' .. owner)
  local text = place and ticket_of(lock, place) and redis.call('HGET', lock.key, place)
  local waiter = text and read_waiter(text)
  if waiter and waiter.owner == owner then return waiter, place end
end

-- Since when (ms) a waiter has waited in all: it came to this queue at "since", and had waited
-- before for another of its keys, for as long as the note waited=MS in its WHO says.
local function waits_since(since, who)
  local waited_before = number(string.match(who, ' waited=(%d+)')) or 0
  return since - waited_before
end

-- Whether the caller, though it has no place in this queue, waited before the other waiter of its
-- group did: it had a place, which was dropped; or it has waited for another of its keys, where it
-- asks for one after the other.
local function came_before(waiter)
  local mine = waits_since(now, request.who)
  return had[1] or mine < now and mine < waits_since(number(waiter.since) or 0, waiter.who)
end

-- The record of the waiter of the caller's group that came later and so waits instead of the
-- caller; nil if none did. send_away_rival() has noted it in the field g. Where that note is gone,
-- or was never made, the waiter that has the group's place now counts, if the caller waited before
-- that did.
local function superseded_by(lock)
  if lock.queue.mine then return nil end
  local superseded = redis.call('HGET', lock.key, 'g') or '' -- lines: OWNER RECORD
  local _, at = string.find('\n' .. superseded, '\n' .. args.owner .. ' ', 1, true)
  if at then return string.match(superseded, '^[^\n]*', at) end -- "at" is where RECORD begins
  local waiter = rival_in_group(lock)
  return waiter and came_before(waiter) and record_for_others(waiter) or nil
end

-- Sends away the other waiter of the caller's group, if the caller has come new: clears its place,
-- has it call, and adds to the end of the field g what it is answered then, its owner and the
-- caller's record. One that was handed the lock in the same moment has no place any more, and runs.
local function send_away_rival(lock)
  if lock.queue.mine then return end
  local waiter, place = rival_in_group(lock)
  if not waiter then return end
  keep_key(lock, request.lease)
  clear_place(lock, place, waiter)
  local me = { deadline = now + request.place_ttl, owner = args.owner, since = whole(now),
               mode = request.mode, who = request.who }
  local lines = {}
  local text_before = redis.call('HGET', lock.key, 'g') or ''
  for line in string.gmatch(text_before, '[^\n]+') do lines[#lines + 1] = line end
  lines[#lines + 1] = waiter.owner .. ' ' .. write_waiter(me)
  local first_kept = math.max(#lines - SENT_AWAY, 0) + 1
  redis.call('HSET', lock.key, 'k', lock.kind, 'g', table.concat(lines, '\n', first_kept))
  notify(lock, waiter)
end

-- Keeps to the rule that only one of a group waits (--latest). A caller that was sent away from one
-- of its queues leaves all others, and the answer to it is returned. Any other caller sends away
-- the others of its group, if it is going to wait itself; then nil is returned.
local function settle_group()
  if not args.latest then return nil end
  for i, lock in ipairs(locks) do
    local by = superseded_by(lock)
    if by then
      leave_all()
      return { 'SUPERSEDED', now, i, by }
    end
  end
  for _, lock in ipairs(request.place_ttl > 0 and locks or {}) do send_away_rival(lock) end
end

-- The decision ------------------------------------------------------------------------------------

-- Why the request does not fit the lock, so that waiting would be wrong: its mode or limit is not
-- that of the holders, a limit is stored or lacking, or it nests where it must not. Returns the
-- word or words for the answer MISFIT; nil: it fits.
local function misfit(lock)
  local parent, held, wanted, mode = lock.parent, lock.held, limit_of(lock), request.mode
  if parent and args.no_nesting then return 'nested' end
  if parent and parent.mode == 's' and mode == 'x' then return 'upgrade' end
  if mode == 'l' and wanted == 0 and not lock.stored_limit then return 'no limit' end
  if mode ~= 'l' and lock.stored_limit and not parent then
    return 'stored ' .. whole(lock.stored_limit)
  end
  if not held then return nil end
  local is_same_kind = (held.mode == 'l') == (mode == 'l')
  if is_same_kind and (mode ~= 'l' or held.limit == wanted) then return nil end
  -- The holders may be dead.
  if not parent then refresh(lock) end
  if not lock.held then return nil end
  return lock.held.mode == 'l' and 'limit ' .. whole(lock.held.limit) or 'lock'
end

-- Finds for each lock the caller's nearest ancestor that holds it (lock.parent, lock.family), and
-- the caller's place (lock.queue). A caller that has lost some of the places that it had when it
-- called last ("had") returns to all of them, or leaves all: "dropped" says that it had lost some,
-- and "left" that it has left all. Returns the refusal of a request that does not fit, that a
-- recent success makes needless ("done"), or that was sent away from its group; nil: there is none.
-- Obstacles that end by themselves are for decide().
local function place_or_refuse()
  local any_missing, any_placed = false, #had > 0
  if locks[2] then share_bound() end
  for i, lock in ipairs(locks) do
    lock.parent, lock.family = find_parent(lock)
    if lock.own_place or had[i] then keep_key(lock, request.lease) end
    local what = misfit(lock) or mirrors and mirrors.misfit(lock, args.mirror)
    if what then return { 'MISFIT', now, what, i } end
    find_place(lock)
    any_missing = any_missing or not lock.queue.mine
    any_placed = any_placed or lock.queue.mine
  end
  if done then
    leave_all()
    return { 'DONE', now, done.which, done.ago, successful_run(locks[done.which], done.began) }
  end
  local refusal = settle_group()
  if refusal then return refusal end
  dropped = request.place_ttl > 0 and any_missing and any_placed
  left = dropped and not retake_all_places()
end

-- Sets obstacle and turn of all the locks. Returns three values. First the locks that the caller
-- can have now, in the order in which it takes them: where it takes only some, one that an ancestor
-- has reserved for it comes last, since it is its own already. Then the number of the lock, among
-- the others, that the answer tells of, and the obstacle there: the first one; but where the caller
-- takes only some, and that one is closed, rather one that is not.
local function find_free()
  local free, reserved, blocked, blocked_by = {}, {}, nil, nil
  for i, lock in ipairs(locks) do
    local found = obstacle(lock, request.mode, lock.parent, lock.family)
      or mirrors and mirrors.obstacle(lock, args.mirror) or nil
    lock.obstacle, lock.turn = found, find_turn(lock)
    local is_closed = found and found.closed
    if not found and lock.turn.next then
      local is_reserved = lock.parent and has_note(lock.parent.rest, 'reserved=1')
      table.insert(request.take and is_reserved and reserved or free, lock)
    elseif not blocked
      or request.take and blocked_by and blocked_by.closed and not is_closed then
      blocked, blocked_by = i, found
    end
  end
  for _, lock in ipairs(reserved) do table.insert(free, lock) end
  return free, blocked, blocked_by
end

-- Decides about the request. Returns a refusal, if a lock is damaged; or nil and the decision, a
-- table: "grant", a list of the locks to grant, or nil; "lacks", how many of the needed locks are
-- not free; "which", the number of the lock that the answer tells of, and "found", the obstacle
-- there, or nil; "free", whether as many locks as it needs are free, and the server grants them.
local function decide()
  local free, blocked, found = find_free()
  for i, lock in ipairs(locks) do
    if lock.damaged then return { 'MISFIT', now, 'damaged', i } end
  end
  while #free > request.needed do table.remove(free) end
  local lacks = request.needed - #free
  if lacks > 0 then return nil, { lacks = lacks, which = blocked, found = found } end
  if grace > 0 then return nil, { lacks = 0, which = 1 } end
  return nil, { lacks = 0, which = 1, grant = not args.queue_only and free or nil, free = true }
end

-- For --replace: asks the holders of the lock to release it, as far as they can hear that; of a
-- semaphore, only the one that has had its slot for longest. Returns whether all of them hear it
-- that live. They are told who asks; a WHO of "-" is of a caller that does not tell who it is.
local function ask_holders(lock)
  local host, user, pid = string.match(request.who, '^(%S+) (%S+) (%S+) ')
  local notes, all_hear = 'why=--replace', true
  if user and user ~= '-' then
    notes = 'by=' .. user .. '@' .. host .. '%20pid%20' .. pid .. ' ' .. notes
  end
  local families = all_families(lock) or {}
  local only = lock.held.mode == 'l' and oldest_of(families)
  for _, family in ipairs(families) do
    local entries = (not only or family.name == only) and family.entries or {}
    for _, entry in ipairs(entries) do
      if can_be_asked(entry) then
        ask_holder(lock, family, entry, notes)
      elseif not is_dead(entry) then
        all_hear = false
      end
    end
  end
  return all_hear
end

-- For --replace: asks the holders of as many locks as the request lacks to release them. A lock
-- that some holders do not hear about is not counted, though the others are asked. Where the caller
-- nests, none is asked: those beside it keep it out, and its own ancestors would be asked with
-- them.
local function ask_to_release(lacks)
  for _, lock in ipairs(locks) do
    local is_kept_out = lock.obstacle and lock.held and not lock.parent
    if lacks > 0 and is_kept_out and ask_holders(lock) then lacks = lacks - 1 end
  end
end
