-- The decision of acquire.lua about each lock.
--- @include "acquire/places"
--- @include "acquire/grant"

-- Turns -------------------------------------------------------------------------------------------

-- How many of a list have come later than the caller; all of it, if these are COUNTED or more: a
-- call looks at no more tickets than that.
local function count_later(lock, list)
  local function is_later(n) return (ticket_at(lock, list, n) or 0) > lock.queue.mine end
  local n = math.max(list.first, list.last - COUNTED + 1)
  if n > list.first and is_later(n) then return list.last - list.first + 1 end
  while n <= list.last and not is_later(n) do n = n + 1 end
  return count_in_use(lock, list, n, list.last)
end

-- The caller's position in the queue, for people; 1: it is first. One in a list comes behind the
-- lists of higher priorities and those before it in its own. One in no list (a plain one, while all
-- others have higher priorities) comes behind the tickets before its own, and those of the lists
-- that have come later.
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

-- Whether the caller need not wait for the first, since they can share the lock: both have the same
-- mode, which is not exclusive, stand in the same line, and were called. A reader may also be the
-- next one behind those that were called, as these may never come; where lists say who is next, it
-- may not. line: that of the first.
local function goes_along(lock, first, line)
  local queue = lock.queue
  if request.mode == 'x' or not queue.mine or first.mode ~= request.mode then return false end
  if line.priority ~= (lock.listed and priority or nil) then return false end
  local by_lists = line == queue and queue.base == 'q' and next(lists_of(lock))
  local beyond = request.mode == 's' and not by_lists and 1 or 0
  return (lock.listed or queue.mine) <= line.called + beyond
end

-- Whether the caller is a newcomer whose priority puts it before the first in turn: one in a list
-- of a lower priority, or a plain one that has not waited for too long. Those that nest have no
-- priorities; and where it is not known yet who is first, none comes before it.
local function outranks(lock, first, line)
  local queue = lock.queue
  if queue.mine or queue.base ~= 'q' or first.owner == '' then return false end
  return priority > (line.priority or 0) and (line.priority or not is_overdue(lock, first, bound))
end

-- The waiter whose turn it is, "first"; whether that is the caller, "is_first", or one that has
-- waited for too long, "late"; and whether no waiter comes before the caller, "next". A caller that
-- nests passes a first one that waits for another of its keys, and all behind that: it may be a key
-- of the caller's ancestors, and then all would wait for each other.
local function find_turn(lock)
  local queue, most = lock.queue, request.place_ttl > 0 and request.place_ttl
  local first, line = first_in_turn(lock, queue, most, bound)
  if not first then return { next = true } end
  local mine = queue.mine and first.ticket == queue.mine
  return {
    first = first, is_first = mine,
    late = not mine and line == queue and line.base == 'q' and first.who
      and is_overdue(lock, first, bound),
    next = mine or goes_along(lock, first, line) or outranks(lock, first, line)
      or #lock.path > 1 and first.elsewhere,
  }
end

-- Groups ------------------------------------------------------------------------------------------

-- Of a group, only the waiter that queued up last waits: the one before it is sent away.
local SENT_AWAY = 64 -- are told so, however late they ask

-- The waiter of the group that has a place, dead or alive, and the place; nil if no other has one.
-- The field of the group is named after the queue: any place in it tells which.
local function rival_in_group(lock)
  local field = group_field(lock, place_of(lock.queue, 0), request.who)
  local other = redis.call('HGET', lock.key, field)
  local place = other and other ~= args.owner and redis.call('HGET', lock.key, 'w:' .. other)
  local text = place and ticket_of(lock, place) and redis.call('HGET', lock.key, place)
  local waiter = text and read_waiter(text)
  if waiter and waiter.owner == other then return waiter, place end
end

-- Since when a waiter that came at "since" waits, here or for another of its keys.
local function waits_since(since, who)
  return since - (number(string.match(who, ' waited=(%d+)')) or 0)
end

-- Whether the caller waited before the other waiter of its group did, though it has no place: it
-- was dropped from it; or it waited for another of its keys, of which each is asked for by itself.
local function came_before(waiter)
  local mine = waits_since(now, request.who)
  return had[1] or mine < now and mine < waits_since(number(waiter.since) or 0, waiter.who)
end

-- The record of the waiter that came instead of the caller; nil if none did. send_away_rival() has
-- noted it in the field g; where the note is gone, or there never was one, the caller may have come
-- before the waiter that has the group's place now.
local function superseded_by(lock)
  if lock.queue.mine then return nil end
  local superseded = redis.call('HGET', lock.key, 'g') or ''
  local _, at = string.find('\n' .. superseded, '\n' .. args.owner .. ' ', 1, true)
  if at then return string.match(superseded, '^[^\n]*', at) end
  local waiter = rival_in_group(lock)
  return waiter and came_before(waiter) and record_for_others(waiter) or nil
end

-- Sends away the other waiter of the caller's group, if the caller has come new: clears its place,
-- tells it to call, and adds to the end of the field g what it is then answered. One that was
-- handed the lock in the same moment has no place any more, and runs.
local function send_away_rival(lock)
  if lock.queue.mine then return end
  local waiter, place = rival_in_group(lock)
  if not waiter then return end
  keep_key(lock, request.lease)
  clear_place(lock, place, waiter)
  local me = { deadline = now + request.place_ttl, owner = args.owner, since = whole(now),
               mode = request.mode, who = request.who }
  local lines = {}
  local before = redis.call('HGET', lock.key, 'g') or ''
  for line in string.gmatch(before, '[^\n]+') do lines[#lines + 1] = line end
  lines[#lines + 1] = waiter.owner .. ' ' .. write_waiter(me)
  redis.call('HSET', lock.key, 'k', lock.kind, 'g',
    table.concat(lines, '\n', math.max(#lines - SENT_AWAY, 0) + 1))
  notify(lock, waiter)
end

-- Has a caller that was sent away from one of its queues leave all others, and returns the answer
-- to it. Any other caller sends away the others of its group, if it is going to wait itself.
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

-- Why the request can never be granted beside what the lock is now, so that waiting would be wrong:
-- its mode or limit is not that of the holders, a limit is stored or lacking, or it nests where it
-- must not. nil: it fits.
local function misfit(lock)
  local parent, held, wanted, mode = lock.parent, lock.held, limit_of(lock), request.mode
  if parent and args.no_nesting then return 'nested' end
  if parent and parent.mode == 's' and mode == 'x' then return 'upgrade' end
  if mode == 'l' and wanted == 0 and not lock.stored_limit then return 'no limit' end
  if mode ~= 'l' and lock.stored_limit and not parent then
    return 'stored ' .. whole(lock.stored_limit)
  end
  if not held then return nil end
  local same_kind = (held.mode == 'l') == (mode == 'l')
  if same_kind and (mode ~= 'l' or held.limit == wanted) then return nil end
  -- Perhaps the holders of the other kind are dead.
  if not parent then refresh(lock) end
  if not lock.held then return nil end
  return lock.held.mode == 'l' and 'limit ' .. whole(lock.held.limit) or 'lock'
end

-- Finds the caller's nearest ancestors and places (lock.parent, lock.family, lock.queue), and sets
-- "dropped" and "left" (places.lua). Returns the refusal of a request that does not fit, that a
-- recent success makes needless, or that was sent away from its group. An obstacle that ends by
-- itself is for decide().
local function place_or_refuse()
  local missing, placed = false, #had > 0
  if locks[2] then share_bound() end
  for i, lock in ipairs(locks) do
    lock.parent, lock.family = find_parent(lock)
    if lock.place or had[i] then keep_key(lock, request.lease) end
    local what = misfit(lock) or mirrors and mirrors.misfit(lock, args.mirror)
    if what then return { 'MISFIT', now, what, i } end
    find_place(lock)
    missing = missing or not lock.queue.mine
    placed = placed or lock.queue.mine
  end
  if done then
    leave_all()
    return { 'DONE', now, done.which, done.ago, successful_run(locks[done.which], done.began) }
  end
  local refusal = settle_group()
  if refusal then return refusal end
  dropped = request.place_ttl > 0 and missing and placed
  left = dropped and not retake_all_places()
end

-- Sets obstacle and turn of all the locks. Returns those that the caller can have now, in the order
-- in which it takes them: of several of which it takes some, one that an ancestor has reserved for
-- it comes last, since it is its own already. Then which of the others to tell of, and the obstacle
-- there: the first one; but if that is closed, rather one that others hold.
local function find_free()
  local free, reserved, blocked, found = {}, {}, nil, nil
  for i, lock in ipairs(locks) do
    local what = obstacle(lock, request.mode, lock.parent, lock.family)
      or mirrors and mirrors.obstacle(lock, args.mirror) or nil
    lock.obstacle, lock.turn = what, find_turn(lock)
    if not what and lock.turn.next then
      local last = request.take and lock.parent and has_note(lock.parent.rest, 'reserved=1')
      table.insert(last and reserved or free, lock)
    elseif not blocked
      or request.take and found and found.closed and not (what and what.closed) then
      blocked, found = i, what
    end
  end
  for _, lock in ipairs(reserved) do table.insert(free, lock) end
  return free, blocked, found
end

-- Looks at all the locks. Returns a refusal, or nil and the decision: "grant", the locks to grant,
-- or nil; "lacks", how many of the needed locks are not free; "which", the number of the lock to
-- tell of, and "found", what keeps the caller out of it; "free": nothing keeps it out of as many as
-- it needs.
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

-- --replace: asks the holders that keep the caller out to release the lock, as far as they can hear
-- it; of a semaphore, the one that has had its slot for longest. Returns whether all of those that
-- live hear it. A WHO of "-" is of a caller that does not tell who it is.
local function ask_obstacles(lock)
  local host, user, pid = string.match(request.who, '^(%S+) (%S+) (%S+) ')
  local notes, all = 'why=--replace', true
  if user and user ~= '-' then
    notes = 'by=' .. user .. '@' .. host .. '%20pid%20' .. pid .. ' ' .. notes
  end
  local families = all_families(lock) or {}
  local only = lock.held.mode == 'l' and oldest_of(families)
  for _, family in ipairs(families) do
    for _, e in ipairs(family.entries) do
      if not only or family.name == only then
        if can_be_asked(e) then ask_holder(lock, family, e, notes) else all = all and is_dead(e) end
      end
    end
  end
  return all
end

-- Asks the holders of as many locks as are lacking to release them. A lock of which only some hear
-- it is not one of these, but they are asked. A caller that nests is kept out by those beside it,
-- and its own ancestors would be asked with them.
local function ask_to_release(lacks)
  for _, lock in ipairs(locks) do
    if lacks > 0 and lock.obstacle and lock.held and not lock.parent and ask_obstacles(lock) then
      lacks = lacks - 1
    end
  end
end
