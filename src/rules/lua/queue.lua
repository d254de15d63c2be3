-- The waiters of a lock, in their queues.
--- @include "arguments"
--- @include "lock"
--- @include "waiter"

local BOUND = 900000 -- ms: how long others may pass a waiter, unless a request says less
local WALK = 10000   -- tickets that one call passes over at most

-- The record of a waiter as others may see it: without its offer, as a message with the token of
-- that starts the waiter, and without the marks "far" and "elsewhere", which say nothing to them.
local function record_for_others(waiter)
  return write_waiter({ deadline = waiter.deadline, owner = waiter.owner, since = waiter.since,
                        mode = waiter.mode, who = waiter.who })
end

-- Publishes a message to a waiter, or a holder. Returns the reply of the server, which may be an
-- error: publishing only makes it quick, and a message that is lost, or forbidden by the server,
-- costs the time until the receiver calls by itself.
local function publish(lock, waiter, message)
  return redis.pcall('PUBLISH', lock.key .. ':' .. waiter.owner, message)
end

-- Has a waiter call, or a holder renew, at once. The message says nothing: the answer to their call
-- tells what has changed. Returns the reply of the server, as publish().
local function notify(lock, waiter)
  return publish(lock, waiter, '1')
end

-- The name of the field g:QUEUE:GROUP, which notes the only waiter of a group; nil if WHO names no
-- group, by the note latest=GROUP. place: any place in the queue. A group without a name has that
-- of the lock.
local function group_field(lock, place, who)
  local group = string.match(who, ' latest=(%S*)')
  if not group then return nil end
  if group == '' then group = string.match(lock.key, '{(.*)}') or '' end
  local queue_base = string.match(place, '^(.*):%d+$')
  return 'g:' .. queue_base .. ':' .. group
end

-- Priorities, -9 to 9. All waiters have tickets in the order of arrival, as "q" tells; those of one
-- priority are also in a list, in their order. Waiters of priority 0 are not in a list as long as
-- none has a lower one. When the first with a lower one comes, they are put into a list
-- (list_plain() in places.lua), and so is every later one until the lists of 0 and below are empty.
local HIGHEST, LOWEST = 9, -9

-- The lists of the waiters with a priority: a table from the priority to its list, without the
-- empty ones. The first time, it reads them from the field o into lock.lists, and into lock.bound
-- how long (ms) others may pass a waiter. A list that cannot be read counts as empty, and its
-- waiters go by their tickets.
local function lists_of(lock)
  if lock.lists then return lock.lists end
  -- A user that may only look has the right to HMGET.
  local text = redis.call('HMGET', lock.key, 'o')[1] or ''
  lock.lists, lock.bound = {}, number(string.match(text, '^%d+')) or BOUND
  for priority, first, last, called in string.gmatch(text, ' (-?%d):(%d+):(%d+):(%d+)') do
    local list = { priority = tonumber(priority), first = number(first), last = number(last),
                   called = number(called) }
    local is_sound = list.first and list.last and list.called and list.first >= 1
    if is_sound and list.first <= list.last then lock.lists[list.priority] = list end
  end
  return lock.lists
end

-- Writes lock.bound and lock.lists to the field o. Lists that have become empty are dropped, here
-- and in lock.lists. If there is no list, and the bound is the usual one, the field is removed, as
-- its absence says the same.
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

-- The name of the field o:PRIORITY:N, which has the ticket of the waiter that is number "rank" in
-- the list.
local function list_field(list, rank)
  return 'o:' .. list.priority .. ':' .. whole(rank)
end

-- The list that a waiter is in, and its number there, by the note rank=PRIORITY:N in its WHO; nil
-- if it is in none.
local function list_of(lock, who)
  local priority, rank = string.match(who, ' rank=(-?%d):(%d+)')
  local list = priority and lists_of(lock)[tonumber(priority)]
  rank = number(rank)
  if list and rank then return list, rank end
end

-- The note rank=PRIORITY:N, for the caller's WHO, of its number in the list of its priority; '' if
-- it is in none.
local function rank_note(lock)
  return lock.listed and ' rank=' .. (args.priority or 0) .. ':' .. whole(lock.listed) or ''
end

-- Whether the waiter has waited for so long that no other waiter passes it any more: as long as the
-- least bound of those that wait, or of the caller, which its record may not tell yet (bound, ms;
-- nil: none). A waiter for several keys notes when that will be (due=), for all of them the same,
-- or two such waiters could each be the first for one key and wait for the other.
local function is_overdue(lock, waiter, bound)
  local due = number(string.match(waiter.who, ' due=(%d+)'))
  local may_change = bound and waiter.owner == lock.owner -- by the caller's bound
  if due and not may_change then return now >= due end
  local before_this_place = number(string.match(waiter.who, ' waited=(%d+)')) or 0
  local waited = before_this_place + now - (number(waiter.since) or now)
  return waited >= math.min(lock.bound, bound or lock.bound)
end

-- Clears a place: removes its field, and the others that name it, which are w:OWNER, that of its
-- group, and its number in a list, which then begins behind that if it was the first. waiter: as
-- the place described it; nil if that cannot be read: then the other fields are left, and whoever
-- reads them finds no such place.
local function clear_place(lock, place, waiter)
  redis.call('HDEL', lock.key, place)
  if not waiter then return end
  redis.call('HDEL', lock.key, 'w:' .. waiter.owner)
  local group = group_field(lock, place, waiter.who)
  if group then redis.call('HDEL', lock.key, group) end
  local list, rank = list_of(lock, waiter.who)
  if not list then return end
  redis.call('HDEL', lock.key, list_field(list, rank))
  if list.first == rank then
    list.first = rank + 1
    write_lists(lock)
  end
end

-- The name of the field that is the place of a ticket in the queue: q:N, or q:OWNER:N.
local function place_of(queue, ticket)
  return queue.base .. ':' .. whole(ticket)
end

-- Has a far waiter call, as it has come near: its place, which was kept for long, is kept only for
-- waiter.far ms from now on, so it must call by then; and its mark becomes far=0, told. One that is
-- dead is marked, too, and not told. Changes only "waiter", whose record the caller of this
-- function writes. Where the server forbids to publish, nothing changes: waiters find their turn by
-- their own calls.
local function recall(lock, waiter)
  local was_told = waiter.far == 0
  if was_told then return end
  local is_alive = waiter.deadline > now
  local reply = is_alive and notify(lock, waiter)
  local is_forbidden = type(reply) == 'table' and reply.err
  if is_forbidden then return end
  waiter.deadline, waiter.far = math.min(waiter.deadline, now + waiter.far), 0
end

-- Tells the far waiters that have come near since the queue was last written to call, and writes
-- their records. Near are the first NEAR tickets. When the queue was last written, near_from was
-- its first ticket, and those near to that were told: so this continues behind them. For each dead
-- waiter that this call has passed over (queue.dead), NEAR more are told, as many that died at the
-- same time must not keep the others for long.
local function recall_near(lock, queue)
  local from = math.max(queue.near_from + NEAR, queue.first)
  local to = queue.first + NEAR * (1 + math.min(queue.dead or 0, NEAR)) - 1
  local places = {}
  queue.near_from, queue.dead = queue.first, 0
  for ticket = from, math.min(to, queue.last) do places[#places + 1] = place_of(queue, ticket) end
  if queue.base ~= 'q' or not places[1] then return end -- waiters that nest are never far
  for i, text in ipairs(redis.call('HMGET', lock.key, unpack(places))) do
    local waiter = text and read_waiter(text)
    if waiter and waiter.far and waiter.far > 0 then
      recall(lock, waiter)
      redis.call('HSET', lock.key, places[i], write_waiter(waiter))
    end
  end
end

-- Writes the queue to its field, and tells the far waiters that have come near to call. An empty
-- queue of those that nest is removed; that of the lock itself stays, so that tickets are not used
-- twice.
local function write_queue(lock, queue)
  recall_near(lock, queue)
  if queue.base ~= 'q' and queue.first > queue.last then
    redis.call('HDEL', lock.key, queue.base)
  else
    redis.call('HSET', lock.key, queue.base,
      whole(queue.first) .. ' ' .. whole(queue.last) .. ' ' .. whole(queue.called))
  end
end

-- The queue of the waiters that nest in the holder whose entry is "parent"; if that is nil, the
-- queue of all others. One that cannot be read begins anew, as an empty one.
local function queue_below(lock, parent)
  if not parent then return lock.queue end
  local base = 'q:' .. parent.owner
  return read_queue(base, redis.call('HGET', lock.key, base)) or read_queue(base)
end

-- Returns three values: the waiter that has that ticket, if it is alive, or nil; the same waiter,
-- dead or alive, or nil; and the text of its place, false if there is none. The caller itself
-- (queue.mine is its ticket) is alive, as it calls, even if its record is late or missing.
-- place_ttl: for how long (ms) a call keeps a place, at most; nil: the caller of this function does
-- not know.
local function waiter_at(lock, queue, ticket, place_ttl)
  local place = place_of(queue, ticket)
  local text = redis.call('HGET', lock.key, place)
  local found = text and read_waiter(text)
  -- A clock that was set back must not keep a dead waiter longer than a call keeps a place.
  if found and place_ttl and found.deadline > now + place_ttl then
    found.deadline = now + place_ttl
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

-- The ticket at a position of a line. In a queue, positions are tickets; in a list, a field has the
-- ticket, and nil says that the position is a hole: its waiter has left.
local function ticket_at(lock, line, position)
  local is_queue = not line.priority
  if is_queue then return position end
  return number(redis.call('HGET', lock.key, list_field(line, position)) or nil)
end

-- Removes the first position of a line, which is a hole, or that of a dead waiter: then it clears
-- the place of that, and counts it in line.dead. ticket: of that position; nil: a hole.
-- dead_waiter, text: the waiter that has the ticket, and the text of its place, of waiter_at(). The
-- caller writes the line.
local function pass_first(lock, queue, line, ticket, dead_waiter, text)
  if line.priority then redis.call('HDEL', lock.key, list_field(line, line.first)) end
  line.first = line.first + 1
  if text then
    clear_place(lock, place_of(queue, ticket), dead_waiter)
    line.dead = (line.dead or 0) + 1
  end
end

-- Returns the first live waiter of a line, which is this queue or a list of it; nil if there is
-- none. Dead waiters before it, and holes (positions without a waiter), are removed, and the line
-- is written then. One call passes over WALK positions at most, and the next call continues: until
-- then it is not known who is first, and a waiter with an empty owner is returned. place_ttl: as of
-- waiter_at().
local function first_waiter(lock, queue, line, place_ttl)
  local from, waiter = line.first, nil
  while line.first <= line.last and not waiter do
    local ticket = ticket_at(lock, line, line.first)
    local found, text
    if ticket then waiter, found, text = waiter_at(lock, queue, ticket, place_ttl) end
    if not waiter and line.first - from == WALK then
      waiter = { owner = '' }
    elseif not waiter then
      pass_first(lock, queue, line, ticket, found, text)
    end
  end
  if line.first == from then return waiter end
  if line.priority then -- the line is a list
    write_lists(lock)
    return waiter
  end
  write_queue(lock, queue)
  -- The first waiter may have come near by that, which has changed its record.
  if waiter and waiter.far then waiter = waiter_at(lock, queue, queue.first, place_ttl) end
  return waiter
end

-- Returns the waiter of the queue whose turn it is, and the line in which it is the first: the
-- queue, or a list. It is the oldest waiter if that has waited for too long, or if there are no
-- lists, as in a queue of those that nest; otherwise the first one of the highest priority. nil:
-- there is none; a waiter with an empty owner: it is not known yet (first_waiter()). place_ttl: as
-- of waiter_at(); bound: as of is_overdue().
local function first_in_turn(lock, queue, place_ttl, bound)
  local oldest = first_waiter(lock, queue, queue, place_ttl)
  if not oldest or oldest.owner == '' then return oldest, queue end
  local has_lists = queue.base == 'q' and next(lists_of(lock))
  if not has_lists or is_overdue(lock, oldest, bound) then return oldest, queue end
  for priority = HIGHEST, LOWEST, -1 do
    local list = lock.lists[priority]
    local first = list and first_waiter(lock, queue, list, place_ttl)
    if first then return first, list end
  end
  return oldest, queue
end

-- Takes the caller out of the queue of the lock, if it waits there: clears its place, and forgets
-- lock.own_place, lock.queue.mine and lock.listed, which tell of it.
local function leave_queue(lock)
  if lock.own_place then
    local text = redis.call('HGET', lock.key, lock.own_place)
    local waiter = text and read_waiter(text) or { owner = lock.owner, who = rank_note(lock) }
    clear_place(lock, lock.own_place, waiter)
  end
  lock.own_place, lock.queue.mine, lock.listed = nil, nil, nil
end

-- Removes and notifies all waiters of a queue, since the holder that they wait to nest in is gone:
-- they call, and queue again where they belong then. Writes the queue.
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
