-- The caller's places in the queues of acquire.lua.
--- @include "holders"
--- @include "acquire/tickets"

-- The caller's priority, and how long it lets others pass it.
local priority, bound = tonumber(args.priority or 0), number(args.bound) or BOUND

-- The places that it had when it called last; behind each, its number in the list of its priority.
local had, had_listed = {}, {}
for place, rank in string.gmatch(args.places or '', '([^%s/]+)/?(%d*)') do
  had[#had + 1], had_listed[#had + 1] = place, number(rank)
end

-- dropped: the caller had places, and has lost some. left: it could not come back to all of them,
-- and so has left them. place_or_refuse() finds out.
local dropped, left = false, false

-- The ticket of a place (the name of a field, q:N or q:OWNER:N); nil if the place is not in
-- lock.queue, or is nil.
local function ticket_of(lock, place)
  local base = lock.queue.base .. ':'
  return place and string.sub(place, 1, #base) == base and number(string.sub(place, #base + 1))
    or nil
end

-- Sets lock.queue to the queue that the caller belongs to, queue.mine to its ticket, if it has a
-- place there, and lock.listed to its number in the list of its priority, if it is in one. A place
-- in another queue (its ancestor has got or lost the lock since), or one that was passed over, is
-- given up.
local function find_place(lock)
  lock.queue = queue_below(lock, lock.parent)
  local ticket = ticket_of(lock, lock.own_place)
  if ticket and ticket >= lock.queue.first and ticket <= lock.queue.last then
    lock.queue.mine = ticket
    if next(lists_of(lock)) then
      local _, rank = list_of(lock, redis.call('HGET', lock.key, lock.own_place) or '')
      lock.listed = rank
    end
  elseif lock.own_place then
    leave_queue(lock)
  end
end

-- Whether the waiters of priority 0 are in a list, too: they are while one with a lower priority
-- may come behind them (queue.lua).
local function plain_are_listed(lock)
  for low = LOWEST, 0 do
    if lists_of(lock)[low] then return true end
  end
  return false
end

-- A new list for that priority, without waiters, of which none was called. ticket: of the waiter
-- that comes first into it; its numbers begin with that, and are never higher than the tickets of
-- later waiters. So the numbers of an earlier list of this priority are lower, and a waiter that
-- comes back with one is in front.
local function new_list(of_priority, ticket)
  return { priority = of_priority, first = ticket, last = ticket - 1, called = ticket - 1 }
end

-- Puts the waiters of priority 0 into a list, in their order: the first waiter with a lower
-- priority comes, which they go before, and the queue does not say that. That newcomer, the caller,
-- has no record yet. None of them is far any more, as distance is that from the first ticket of the
-- queue, which the first of the list may be far from. The caller of this function writes
-- lock.lists.
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

-- Gives the caller a number in a list, and returns it: its former one, if that is free, or else the
-- one behind the last. Widens the list to hold it, and counts the caller as one that was not
-- called. former: nil: it had none. The caller of this function writes the list.
local function number_in_list(lock, list, former)
  local may_be_free = former and former >= 1 and former <= list.last
  if may_be_free and redis.call('HEXISTS', lock.key, list_field(list, former)) == 0 then
    list.first, list.called = math.min(list.first, former), math.min(list.called, former - 1)
    return former
  end
  list.last = list.last + 1
  return list.last
end

-- Puts the caller, which has its ticket, into the list of its priority, sets lock.listed to its
-- number there, and writes that. A caller of priority 0 needs no list as long as plain waiters
-- (those of priority 0) are in none. One of a lower priority puts them into one, as it comes after
-- those that arrive later, too. One that nests, whose queue is not "q", has no priority. former:
-- the number that the caller had in the list; nil: none.
local function join_list(lock, former)
  if lock.queue.base ~= 'q' then return end
  if priority == 0 and not plain_are_listed(lock) then return end
  if priority < 0 and not plain_are_listed(lock) then list_plain(lock) end
  local list = lists_of(lock)[priority] or new_list(priority, lock.queue.mine)
  lock.listed = number_in_list(lock, list, former)
  lock.lists[priority] = list
  redis.call('HSET', lock.key, list_field(list, lock.listed), whole(lock.queue.mine))
  write_lists(lock)
end

-- Lowers lock.bound, for how long (ms) others may pass the waiters of the lock, to what the caller
-- asks for, which joins them: it is the least that one of them asks for. is_empty: no other client
-- waits, so the caller's bound is the least, whatever was stored. Writes it if it has changed. A
-- caller that nests waits in another queue, which has no bound.
local function lower_passing_bound(lock, is_empty)
  if lock.queue.base ~= 'q' then return end
  lists_of(lock) -- loads lock.bound
  local least = is_empty and bound or math.min(bound, lock.bound)
  if least == lock.bound then return end
  lock.bound = least
  write_lists(lock)
end

-- Lowers the caller's "bound", for how long (ms) it lets other waiters pass it, to the least bound
-- in any queue of its keys. A caller that waits for several keys must be passed for equally long in
-- all their queues: otherwise two such waiters could each come first in one queue, and wait for
-- each other. The two could do so, too, where an older waiter, which may be passed for longer,
-- stands before one of them in one queue only, since first_in_turn() does not look behind the
-- oldest waiter of a queue.
local function share_bound()
  for _, lock in ipairs(locks) do
    if lock.queue.first <= lock.queue.last then
      lists_of(lock) -- loads lock.bound
      bound = math.min(bound, lock.bound)
    end
  end
end

-- Has the caller return to the place that it had, from which it was dropped while it could not call
-- (stopped, cut off, or the server stopped), so that an outage does not change the order. No other
-- waiter can have it: tickets are issued once. place: nil if it had none here; former: its number
-- in the list of its priority; nil: it was in none. Returns whether it has that place now; then
-- renew_place() writes its record there.
local function retake_place(lock, place, former)
  local queue, ticket = lock.queue, ticket_of(lock, place)
  if queue.mine then return lock.own_place == place end
  if not ticket or ticket < 1 or ticket > queue.last then return false end
  if redis.call('HEXISTS', lock.key, place) == 1 then return false end
  queue.mine = ticket
  make_key(lock)
  lower_passing_bound(lock, queue.first > queue.last)
  queue.first = math.min(queue.first, ticket)
  queue.called = math.min(queue.called, ticket - 1)
  write_queue(lock, queue)
  lock.own_place = place
  redis.call('HSET', lock.key, 'k', lock.kind, 'w:' .. args.owner, place)
  join_list(lock, former)
  return true
end

-- Has the caller return to its former places (had) in the queues of all locks, or leave all queues,
-- as the order of two waiters in one queue must be that in all others. So the places that it still
-- has must be those that it was told, too: a server that was restored from a file, or an answer
-- that was lost, may have others. Returns whether it is in all queues now.
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

-- Gives the caller, which has no place, the ticket behind all others: sets queue.mine and
-- lock.own_place, and puts it into the list of its priority. renew_place() writes the queue, and
-- the record in the place.
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
  lock.own_place = place_of(queue, queue.mine)
  redis.call('HSET', lock.key, 'k', lock.kind, 'w:' .. args.owner, lock.own_place)
  join_list(lock)
end

-- The caller as a waiter that has come now: the table `waiter` (lock.lua), for its place.
local function new_record(lock)
  return { owner = args.owner, since = whole(now), mode = request.mode,
           who = request.who .. rank_note(lock) }
end

-- Notes in the WHO of a waiter for several keys, the caller, from when on no other waiter passes it
-- (due=TIME, for is_overdue()), in place of an earlier such note.
local function note_due(waiter)
  local waited_before = number(string.match(waiter.who, ' waited=(%d+)')) or 0
  local note = ' due=' .. whole((number(waiter.since) or now) - waited_before + bound)
  local replaced, count = string.gsub(waiter.who, ' due=%d+', note, 1)
  if count == 0 then replaced = (replaced == '' and NOBODY or replaced) .. note end
  waiter.who = replaced
end

-- Counts the caller as a waiter that was not called, in the queue and in its list, and writes both:
-- it may have been called, cannot go, and so must be called again.
local function forget_call(lock)
  local queue, list = lock.queue, lock.listed and lists_of(lock)[priority]
  queue.called = math.min(queue.called, queue.mine - 1)
  write_queue(lock, queue)
  if list and list.called >= lock.listed then
    list.called = lock.listed - 1
    write_lists(lock)
  end
end

-- Keeps the caller's place in the queue of the lock for another while, and writes its record there,
-- which is new if there was none. One that is there changes only in its time, in the number of its
-- request, in whether it waits for other keys and from when on no other waiter passes it, and in
-- what it offers this time. Returns for how many ms the place of a far waiter is kept; nil: it is
-- not far.
local function renew_place(lock)
  local queue = lock.queue
  local text = redis.call('HGET', lock.key, lock.own_place)
  -- A newcomer is now the one that its group knows.
  local group = not text and group_field(lock, lock.own_place, request.who)
  if group then redis.call('HSET', lock.key, group, args.owner) end
  local waiter = text and read_waiter(text) or new_record(lock)
  waiter.who = with_attempt(waiter.who)
  if locks[2] then
    lower_passing_bound(lock)
    note_due(waiter)
  end
  -- Only in a queue without lists is the distance that from the first. And while that one is far
  -- itself, it was told to call and has not: it may be dead, so all that call stay near.
  local may_be_far = queue.base == 'q' and not next(lists_of(lock))
    and not (lock.turn.first and lock.turn.first.far)
  local kept = set_place_ttl(lock, waiter, queue.mine, may_be_far and request.far_ttl or 0)
  -- The caller could go here, so it waits for another of its keys.
  local elsewhere = lock.turn.next and not lock.obstacle and grace == 0
  if elsewhere and not waiter.elsewhere and lock.turn.is_first then
    wake_passing(lock, queue, lock.parent, lock.family)
  end
  waiter.elsewhere = elsewhere
  redis.call('HSET', lock.key, lock.own_place, write_waiter(waiter))
  forget_call(lock)
  keep_key(lock, 0)
  return kept
end

-- Takes the caller out of the queue of the lock, and calls the waiters that can go then: one behind
-- it may be the next.
local function leave_and_wake(lock)
  local placed = lock.own_place
  leave_queue(lock)
  if placed then wake(lock, lock.parent, lock.family) end
end

-- Takes the caller out of the queues of all locks, and calls the waiters that can go then.
local function leave_all()
  for _, lock in ipairs(locks) do leave_and_wake(lock) end
end
