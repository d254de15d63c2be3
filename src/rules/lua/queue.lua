-- The waiters of a lock, in their queues.
--- @include "arguments"
--- @include "lock"
--- @include "waiter"

local BOUND = 900000 -- ms: how long others may pass a waiter, unless a request says less
local WALK = 10000   -- tickets that one call passes over at most

-- The record as others see it: without the offer, as a message with its token starts the waiter,
-- and without the marks of its place.
local function record_for_others(w)
  return write_waiter({ deadline = w.deadline, owner = w.owner, since = w.since, mode = w.mode,
                        who = w.who })
end

-- Publishing only makes it quick: a lost message costs one heartbeat, and so does a server that
-- forbids it.
local function publish(lock, waiter, message)
  return redis.pcall('PUBLISH', lock.key .. ':' .. waiter.owner, message)
end

-- Has a waiter call, or a holder renew: the message says nothing, and the answer to their call
-- does.
local function notify(lock, waiter)
  return publish(lock, waiter, '1')
end

-- The field that notes the only waiter of the group that WHO names; nil: it names none. A group
-- without a name has the key's.
local function group_field(lock, place, who)
  local group = string.match(who, ' latest=(%S*)')
  if not group then return nil end
  if group == '' then group = string.match(lock.key, '{(.*)}') or '' end
  return 'g:' .. string.match(place, '^(.*):%d+$') .. ':' .. group
end

-- Priorities, -9 to 9. All waiters have tickets in the order of arrival, as "q" tells; those of one
-- priority are also in a list, in their order. Waiters of priority 0 are not in a list as long as
-- none has a lower one. When the first with a lower one comes, they are put into a list
-- (list_plain() in places.lua), and so is every later one until the lists of 0 and below are empty.
local HIGHEST, LOWEST = 9, -9

-- The lists of the waiters with a priority, by priority, without the empty ones. Loads the field o
-- into lock.lists and lock.bound when somebody asks for the first time; one that cannot be read
-- counts as empty, and its waiters go by their tickets.
local function lists_of(lock)
  if lock.lists then return lock.lists end
  -- A user that may only look has the right to HMGET.
  local text = redis.call('HMGET', lock.key, 'o')[1] or ''
  lock.lists, lock.bound = {}, number(string.match(text, '^%d+')) or BOUND
  for priority, first, last, called in string.gmatch(text, ' (-?%d):(%d+):(%d+):(%d+)') do
    local list = { priority = tonumber(priority), first = number(first), last = number(last),
                   called = number(called) }
    local sound = list.first and list.last and list.called and list.first >= 1
    if sound and list.first <= list.last then lock.lists[list.priority] = list end
  end
  return lock.lists
end

-- Writes lock.bound and lock.lists to the field o, without the lists that have become empty, which
-- it drops. If that leaves what is assumed without the field, there is none.
local function write_lists(lock)
  local text = whole(lock.bound)
  for priority = LOWEST, HIGHEST do
    local list = lock.lists[priority]
    if list and list.first > list.last then lock.lists[priority], list = nil, nil end
    if list then
      text = text .. ' ' .. priority .. ':' .. whole(list.first) .. ':' .. whole(list.last) .. ':'
        .. whole(list.called)
    end
  end
  if next(lock.lists) or lock.bound ~= BOUND then
    redis.call('HSET', lock.key, 'k', lock.kind, 'o', text)
  else
    redis.call('HDEL', lock.key, 'o')
  end
end

-- The field of the Nth ticket of a list.
local function list_field(list, n)
  return 'o:' .. list.priority .. ':' .. whole(n)
end

-- The list that a waiter is in, by the note in its WHO, and its number there; nil if it is in none.
local function list_of(lock, who)
  local priority, n = string.match(who, ' rank=(-?%d):(%d+)')
  local list = priority and lists_of(lock)[tonumber(priority)]
  n = number(n)
  if list and n then return list, n end
end

-- The note of the caller's number in the list of its priority; '' if it is in none.
local function rank_note(lock)
  return lock.listed and ' rank=' .. (args.priority or 0) .. ':' .. whole(lock.listed) or ''
end

-- Whether the waiter has waited for so long that no other waiter passes it: for the least bound of
-- those that wait. A waiter for several keys has the same time in all of them ("due"), or two could
-- wait for each other. bound: that of a caller, whose record may not tell it yet; nil: none.
local function is_overdue(lock, waiter, bound)
  local due = number(string.match(waiter.who, ' due=(%d+)'))
  if due and not (bound and waiter.owner == lock.owner) then return now >= due end
  local before = number(string.match(waiter.who, ' waited=(%d+)')) or 0
  local waited = before + now - (number(waiter.since) or now)
  return waited >= math.min(lock.bound, bound or lock.bound)
end

-- Clears a place, and whatever else names it: the field of its owner, of its group, and its number
-- in a list, whose first number moves on if it was that. waiter: its record; nil if that cannot be
-- read: then the other fields are left, and whoever reads them finds no such place.
local function clear_place(lock, place, waiter)
  redis.call('HDEL', lock.key, place)
  if not waiter then return end
  redis.call('HDEL', lock.key, 'w:' .. waiter.owner)
  local group = group_field(lock, place, waiter.who)
  if group then redis.call('HDEL', lock.key, group) end
  local list, n = list_of(lock, waiter.who)
  if not list then return end
  redis.call('HDEL', lock.key, list_field(list, n))
  if list.first ~= n then return end
  list.first = n + 1
  write_lists(lock)
end

-- The name of the field that is the place of a ticket.
local function place_of(queue, ticket)
  return queue.base .. ':' .. whole(ticket)
end

-- Has a far waiter call, and keeps its place only for as long as its mark says, in which it must
-- have done so; until then its mark is far=0: told. A dead one is marked, too, and not told. Where
-- the server forbids to publish, waiters find their turn by their calls, and nothing changes. The
-- caller writes the record.
local function recall(lock, waiter)
  if waiter.far == 0 then return end
  local sent = waiter.deadline <= now or notify(lock, waiter)
  if type(sent) == 'table' and sent.err then return end
  waiter.deadline, waiter.far = math.min(waiter.deadline, now + waiter.far), 0
end

-- Tells the far waiters to call that have come near since the queue was last written, when the
-- first NEAR from near_from on were told. Near are the first NEAR tickets, and NEAR more for each
-- dead waiter that this call has passed over: many that died at the same time must not keep the
-- others for long. So each of the first NEAR has called, or was told to, since it came so near.
local function recall_near(lock, queue)
  local from = math.max(queue.near_from + NEAR, queue.first)
  local last = queue.first + NEAR * (1 + math.min(queue.dead or 0, NEAR)) - 1
  local names = {}
  queue.near_from, queue.dead = queue.first, 0
  for ticket = from, math.min(last, queue.last) do names[#names + 1] = place_of(queue, ticket) end
  if queue.base ~= 'q' or not names[1] then return end
  for i, text in ipairs(redis.call('HMGET', lock.key, unpack(names))) do
    local waiter = text and read_waiter(text)
    if waiter and waiter.far and waiter.far > 0 then
      recall(lock, waiter)
      redis.call('HSET', lock.key, names[i], write_waiter(waiter))
    end
  end
end

-- Writes the queue, and tells those that have come near. The queue of the lock itself stays when it
-- is empty, so that tickets are not used twice.
local function write_queue(lock, queue)
  recall_near(lock, queue)
  if queue.base ~= 'q' and queue.first > queue.last then
    redis.call('HDEL', lock.key, queue.base)
  else
    redis.call('HSET', lock.key, queue.base,
      whole(queue.first) .. ' ' .. whole(queue.last) .. ' ' .. whole(queue.called))
  end
end

-- The queue of those that nest in the entry "parent"; nil: that of all others. One that cannot be
-- read begins anew.
local function queue_below(lock, parent)
  if not parent then return lock.queue end
  local base = 'q:' .. parent.owner
  return read_queue(base, redis.call('HGET', lock.key, base)) or read_queue(base)
end

-- The waiter with that ticket, if it is alive; then the waiter, dead or alive, and its record. The
-- caller (queue.mine is its ticket) is alive, as it calls, even if its record is late or missing.
-- most: for how long a place is kept, ms; nil: unknown.
local function waiter_at(lock, queue, ticket, most)
  local place = place_of(queue, ticket)
  local text = redis.call('HGET', lock.key, place)
  local found = text and read_waiter(text)
  -- A clock that was set back must not keep a dead waiter longer than a place is kept, if the
  -- caller knows that.
  if found and most and found.deadline > now + most then
    found.deadline = now + most
    redis.call('HSET', lock.key, place, write_waiter(found))
  end
  if ticket == queue.mine then
    found = found or { owner = lock.owner, since = whole(now), who = args.who or '' }
  elseif found and found.deadline <= now then
    return nil, found, text
  end
  if found then found.ticket = ticket end
  return found, found, text
end

-- The ticket with that number in a line: in a queue, numbers are tickets; in a list, nil is a hole.
local function ticket_at(lock, line, n)
  if not line.priority then return n end
  return number(redis.call('HGET', lock.key, list_field(line, n)) or nil)
end

-- Removes the first number of a line: a hole, or that of a dead waiter, of which line.dead counts
-- how many. found and text: of waiter_at(). The caller writes the line.
local function pass_first(lock, queue, line, ticket, found, text)
  if line.priority then redis.call('HDEL', lock.key, list_field(line, line.first)) end
  line.first = line.first + 1
  if text then
    clear_place(lock, place_of(queue, ticket), found)
    line.dead = (line.dead or 0) + 1
  end
end

-- The first waiter of a line; nil: there is none. The dead ones before it, and the holes (numbers
-- without a waiter), are removed. most: as of waiter_at(). One call looks at WALK tickets only, and
-- the next call continues: until then no waiter is first, which one with an empty owner tells.
local function first_waiter(lock, queue, line, most)
  local from, waiter = line.first, nil
  while line.first <= line.last and not waiter do
    local ticket = ticket_at(lock, line, line.first)
    local found, text
    if ticket then waiter, found, text = waiter_at(lock, queue, ticket, most) end
    if not waiter and line.first - from == WALK then
      waiter = { owner = '' }
    elseif not waiter then
      pass_first(lock, queue, line, ticket, found, text)
    end
  end
  if line.first == from then return waiter end
  if line.priority then
    write_lists(lock)
    return waiter
  end
  write_queue(lock, queue)
  -- The first waiter may have come near by that.
  if waiter and waiter.far then waiter = waiter_at(lock, queue, queue.first, most) end
  return waiter
end

-- The waiter whose turn it is, and the line that it stands in: a queue, or a list of it. The oldest
-- comes first if it has waited for too long, or there are no lists; otherwise the first one of the
-- highest priority. Those that nest wait only in the order of arrival. nil: there is none; one
-- with an empty owner: it is not known yet (first_waiter()). most: as of waiter_at(); bound: as of
-- is_overdue().
local function first_in_turn(lock, queue, most, bound)
  local oldest = first_waiter(lock, queue, queue, most)
  if not oldest or oldest.owner == '' or queue.base ~= 'q' or not next(lists_of(lock)) then
    return oldest, queue
  end
  if is_overdue(lock, oldest, bound) then return oldest, queue end
  for priority = HIGHEST, LOWEST, -1 do
    local list = lock.lists[priority]
    local first = list and first_waiter(lock, queue, list, most)
    if first then return first, list end
  end
  return oldest, queue
end

-- Removes the waiter that the caller is, if it is one: its place, and what lock and lock.queue say
-- of it.
local function leave_queue(lock)
  if lock.place then
    local text = redis.call('HGET', lock.key, lock.place)
    clear_place(lock, lock.place,
      text and read_waiter(text) or { owner = lock.owner, who = rank_note(lock) })
  end
  lock.place, lock.queue.mine, lock.listed = nil, nil, nil
end

-- Removes and notifies all waiters of a queue, who then queue again where they belong: the holder
-- that they nest in is gone.
local function empty_queue(lock, queue)
  for ticket = queue.first, queue.last do
    local place = place_of(queue, ticket)
    local text = redis.call('HGET', lock.key, place)
    local waiter = text and read_waiter(text)
    if text then clear_place(lock, place, waiter) end
    if waiter then notify(lock, waiter) end
  end
  queue.first = queue.last + 1
  write_queue(lock, queue)
end
