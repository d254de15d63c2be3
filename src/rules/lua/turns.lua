-- Whose turn it is, and how many come before the caller of acquire.lua.
--- @include "places"

-- How many of a list have come later than the caller; all of it, if these are more than a hundred.
local function later_in(lock, list)
  local function is_later(n) return (ticket_at(lock, list, n) or 0) > lock.queue.mine end
  local n = math.max(list.first, list.last - COUNTED + 1)
  if n > list.first and is_later(n) then return list.last - list.first + 1 end
  while n <= list.last and not is_later(n) do n = n + 1 end
  return in_use(lock, list, n, list.last)
end

-- The caller's position in the queue. Those of a higher priority that have come later are before
-- it.
local function position_in(lock)
  local queue = lock.queue
  if lock.is_first then return 1 end
  local lists, found = queue.base == 'q' and lists_of(lock) or {}, 0
  for above = priority + 1, HIGHEST do
    local list = lists[above]
    if list and lock.listed then found = found + in_use(lock, list, list.first, list.last) end
    if list and not lock.listed then found = found + later_in(lock, list) end
  end
  local list = lock.listed and lists[priority]
  if not list then return found + in_use(lock, queue, queue.first, queue.mine) end
  found = found + in_use(lock, list, list.first, lock.listed)
  -- A waiter that has waited for too long comes first as well.
  return math.max(found, lock.late and 2 or 1)
end

-- Whether it can go before the first: if it was called as well. A reader may also go by its own
-- call, as the one that was called may never come.
local function goes_along(lock, first, line)
  local queue = lock.queue
  if ask.mode == 'x' or not queue.mine or first.mode ~= ask.mode then return false end
  if line.priority ~= (lock.listed and priority or nil) then return false end
  local ordered = line == queue and queue.base == 'q' and next(lists_of(lock))
  return (lock.listed or queue.mine) <= line.called + (ask.mode == 's' and not ordered and 1 or 0)
end

-- Whether a newcomer goes before the first.
local function outranks(lock, first, line)
  local queue = lock.queue
  if queue.mine or queue.base ~= 'q' or first.owner == '' then return false end
  return priority > (line.priority or 0) and (line.priority or not is_overdue(lock, first))
end

-- Whether no waiter comes before it. A caller that nests passes a first one that waits for another
-- of its keys, and all behind that: it may be a key of the caller's ancestors, and then all would
-- wait for each other.
local function is_next(lock)
  lock.callers_bound = bound
  local first, line = first_in_turn(lock, lock.queue, ask.place_ttl > 0 and ask.place_ttl)
  local mine = lock.queue.mine and first and first.ticket == lock.queue.mine
  local next_one = not first or mine or goes_along(lock, first, line)
    or outranks(lock, first, line) or #lock.path > 1 and first.elsewhere
  lock.is_first = mine
  lock.late = first and not mine and line == lock.queue and line.base == 'q'
    and first.who and is_overdue(lock, first)
  lock.first, lock.callers_bound = first, nil
  return next_one
end
