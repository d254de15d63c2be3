-- The caller's places in the queues of acquire.lua.
--- @include "holders"
--- @include "acquire/tickets"

-- The caller's priority, and how long it lets others pass it.
local priority, bound = tonumber(args.priority or 0), number(args.bound) or BOUND

-- The places that it had when it called last; behind each, its number in the list of its priority.
local had, had_listed = {}, {}
for place, n in string.gmatch(args.places or '', '([^%s/]+)/?(%d*)') do
  had[#had + 1], had_listed[#had + 1] = place, number(n)
end

-- dropped: the caller had places, and has lost some. left: it could not come back to all of them,
-- and so has left them. place_or_refuse() finds out.
local dropped, left = false, false

-- The ticket of a place; nil if it is not in lock.queue, or there is none.
local function ticket_of(lock, place)
  local base = lock.queue.base .. ':'
  return place and string.sub(place, 1, #base) == base and number(string.sub(place, #base + 1))
    or nil
end

-- Finds the queue that the caller belongs to, its ticket there, and its number in the list of its
-- priority, if there are lists. A place in another queue, or one that was passed over, is left.
local function find_place(lock)
  lock.queue = queue_below(lock, lock.parent)
  local ticket = ticket_of(lock, lock.place)
  if ticket and ticket >= lock.queue.first and ticket <= lock.queue.last then
    lock.queue.mine = ticket
    if next(lists_of(lock)) then
      local _, n = list_of(lock, redis.call('HGET', lock.key, lock.place) or '')
      lock.listed = n
    end
  elseif lock.place then
    leave_queue(lock)
  end
end

-- Whether the waiters of priority 0 are in a list, too.
local function plain_are_listed(lock)
  for low = LOWEST, 0 do
    if lists_of(lock)[low] then return true end
  end
  return false
end

-- A list without waiters. Its numbers begin with the ticket of its first waiter: no earlier list of
-- this priority has got as far, so a waiter that comes back with its number there is in front.
-- None of them was called: see CALLED in lock.lua.
local function new_list(of_priority, ticket)
  return { priority = of_priority, first = ticket, last = ticket - 1, called = ticket - 1 }
end

-- Puts the waiters of priority 0 into a list, in their order. The caller has no record yet. None of
-- them is far any more: the first of the list may be far from the first of the queue.
local function list_plain(lock)
  local list = new_list(0, lock.queue.first)
  for ticket = lock.queue.first, lock.queue.last do
    local place = place_of(lock.queue, ticket)
    local text = redis.call('HGET', lock.key, place)
    local waiter = text and read_waiter(text)
    if waiter and not list_of(lock, waiter.who) then
      list.last = list.last + 1
      if ticket <= lock.queue.called then list.called = list.last end
      waiter.who = (waiter.who == '' and NOBODY or waiter.who) .. ' rank=0:' .. whole(list.last)
      if waiter.far then recall(lock, waiter) end
      redis.call('HSET', lock.key, place, write_waiter(waiter), list_field(list, list.last),
        whole(ticket))
    end
  end
  lock.lists[0] = list
end

-- Puts the caller into the list of its priority: at its former number, if that is not taken.
local function join_list(lock, former)
  if lock.queue.base ~= 'q' or priority == 0 and not plain_are_listed(lock) then return end
  if priority < 0 and not plain_are_listed(lock) then list_plain(lock) end
  local list = lists_of(lock)[priority] or new_list(priority, lock.queue.mine)
  if former and former >= 1 and former <= list.last
    and redis.call('HEXISTS', lock.key, list_field(list, former)) == 0 then
    list.first, list.called = math.min(list.first, former), math.min(list.called, former - 1)
    lock.listed = former
  else
    list.last = list.last + 1
    lock.listed = list.last
  end
  lock.lists[priority] = list
  redis.call('HSET', lock.key, list_field(list, lock.listed), whole(lock.queue.mine))
  write_lists(lock)
end

-- Lowers how long others may pass a waiter to the caller's bound: the smallest of those that wait
-- counts. is_empty: no other client waits.
local function lower_passing_bound(lock, is_empty)
  -- This loads lock.bound as well.
  lists_of(lock)
  local least = is_empty and bound or math.min(bound, lock.bound)
  if least == lock.bound then return end
  lock.bound = least
  write_lists(lock)
end

-- Tickets are issued once. A waiter that was dropped while it could not call (stopped, cut off, or
-- the server stopped) comes back to its own ticket, so that an outage does not change the order.
-- place: the one that it had; former: its number in the list of its priority, if it had one.
-- Returns whether it has that place now.
local function retake_place(lock, place, former)
  local queue, ticket = lock.queue, ticket_of(lock, place)
  if queue.mine then return lock.place == place end
  if not ticket or ticket < 1 or ticket > queue.last then return false end
  if redis.call('HEXISTS', lock.key, place) == 1 then return false end
  queue.mine = ticket
  make_key(lock)
  lower_passing_bound(lock, queue.first > queue.last)
  queue.first = math.min(queue.first, ticket)
  queue.called = math.min(queue.called, ticket - 1)
  write_queue(lock, queue)
  lock.place = place
  redis.call('HSET', lock.key, 'k', lock.kind, 'w:' .. args.owner, place)
  join_list(lock, former)
  return true
end

-- Comes back to all queues or to none: the order of two waiters in one must be that in all others.
-- So the places that are left must be those that it was told, of which the lost ones were a part: a
-- server that was restored from a file, or an answer that was lost, may have others.
local function retake_all_places()
  for i, lock in ipairs(locks) do
    if not retake_place(lock, had[i], had_listed[i]) then
      for _, each in ipairs(locks) do
        leave_queue(each)
      end
      return false
    end
  end
  return true
end

-- Gives the caller the ticket behind all others; renew_place() writes its record there.
local function join_queue(lock)
  local queue = lock.queue
  local is_empty = queue.first > queue.last
  lower_passing_bound(lock, is_empty)
  -- Without a waiter the lists have only holes.
  if is_empty and queue.base == 'q' and next(lock.lists) then
    lock.lists = {}
    write_lists(lock)
  end
  queue.last = queue.last + 1
  queue.mine = queue.last
  lock.place = place_of(queue, queue.mine)
  redis.call('HSET', lock.key, 'k', lock.kind, 'w:' .. args.owner, lock.place)
  join_list(lock)
end

-- The caller's record in the queue. From one time on, the same in the queues of all its keys, no
-- other waiter passes it.
local function new_record(lock)
  local who, least = request.who .. rank_note(lock), bound
  if locks[2] then
    for _, each in ipairs(locks) do
      lists_of(each)
      least = math.min(least, each.bound)
    end
    local before = number(string.match(request.who, ' waited=(%d+)')) or 0
    who = (who == '' and NOBODY or who) .. ' due=' .. whole(now - before + least)
  end
  return { owner = args.owner, since = whole(now), mode = request.mode, who = who }
end

-- Keeps the place for another while. The record changes only in its number, in whether it waits for
-- other keys, and in what it offers this time. A waiter that was called and cannot go must be
-- called again. Returns for how long the place of a far waiter is kept.
local function renew_place(lock)
  local queue = lock.queue
  local text = redis.call('HGET', lock.key, lock.place)
  -- Of a group, the one that came last is known.
  local group = not text and group_field(lock, lock.place, request.who)
  if group then redis.call('HSET', lock.key, group, args.owner) end
  local waiter = text and read_waiter(text) or new_record(lock)
  waiter.who = with_attempt(waiter.who)
  -- Until the first has called, which was told to, all that call stay near: it may be dead.
  local usual = queue.base == 'q' and not next(lists_of(lock))
    and not (lock.turn.first and lock.turn.first.far)
  local kept = set_place_ttl(lock, waiter, queue.mine, usual and request.far_ttl or 0)
  local elsewhere = lock.turn.next and not lock.obstacle and grace == 0
  if elsewhere and not waiter.elsewhere and lock.turn.is_first then
    wake_passing(lock, queue, lock.parent, lock.family)
  end
  waiter.elsewhere = elsewhere
  redis.call('HSET', lock.key, lock.place, write_waiter(waiter))
  queue.called = math.min(queue.called, queue.mine - 1)
  write_queue(lock, queue)
  local list = lock.listed and lists_of(lock)[priority]
  if list and list.called >= lock.listed then
    list.called = lock.listed - 1
    write_lists(lock)
  end
  keep_key(lock, 0)
  return kept
end

-- Leaves the queue of the lock, in which a waiter behind the caller may be next.
local function leave_and_wake(lock)
  local placed = lock.place
  leave_queue(lock)
  if placed then wake(lock, lock.parent, lock.family) end
end

local function leave_all()
  for _, lock in ipairs(locks) do leave_and_wake(lock) end
end
