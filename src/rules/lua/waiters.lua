-- The waiters of a lock, for inspect.lua.
--- @include "queue"

local PART = 200    -- tickets of which one call reads the places
local MANY = 100000 -- tickets: a longer queue has mostly holes, or is damaged
local PLAIN = 12    -- turn of a waiter without a priority

-- Adds the waiter that a place (text; false: it is empty) describes to "waiters", with the queue
-- (base) and the ticket that the place belongs to. A dead one is left out: it will be passed over.
local function add_waiter(base, ticket, text)
  local waiter = text and read_waiter(text)
  if not waiter or waiter.deadline <= now then return end
  waiters[#waiters + 1] = { base = base, ticket = ticket, waiter = waiter }
end

-- Reads all fields of the lock at once, and makes "families" and "waiters" of them. The waiters
-- that nest come first, as no other waiter goes before their holder ends; then the others, each by
-- the order of tickets.
local function read_whole()
  local fields = redis.call('HGETALL', KEYS[1])
  families, waiters = {}, {}
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^h:(.+)$')
    local base, ticket = string.match(fields[i], '^(q.*):(%d+)$')
    if name then
      add_family(name, fields[i + 1])
    elseif base and number(ticket) then
      add_waiter(base, number(ticket), fields[i + 1])
    end
  end
  table.sort(waiters, function(a, b)
    if (a.base == 'q') ~= (b.base == 'q') then return b.base == 'q' end
    return a.base < b.base or a.base == b.base and a.ticket < b.ticket
  end)
end

-- Adds the waiters whose tickets are "from" to "to" to "waiters", but of PART tickets at most.
-- Returns the ticket at which the next call continues.
local function read_part(from, to)
  local names = {}
  for ticket = from, math.min(to, from + PART - 1) do
    names[#names + 1] = place_of(lock.queue, ticket)
  end
  local texts = redis.call('HMGET', KEYS[1], unpack(names))
  for i, text in ipairs(texts) do add_waiter('q', from + i - 1, text) end
  return from + #names
end

-- Returns the turn of a waiter, an element of "waiters", where some have a priority: lower numbers
-- come first. Those that nest have 1, overdue ones 2, others 12 less their priority. Then, of one
-- in a list of a priority, its number there, by which its order goes: one that was dropped may have
-- come back with a lower ticket behind others that had come later.
local function turn_of(one, is_due)
  if one.base ~= 'q' then return 1 end
  if is_due then return 2 end
  local list, rank = list_of(lock, one.waiter.who)
  if not list then return PLAIN end
  return PLAIN - list.priority, rank
end

-- Sorts "waiters", which were read in the order of arrival, by their turns, and notes the turn of
-- each. Only the oldest waiter can pass those of the lists by being overdue: so one counts as
-- overdue only if all before it are.
local function sort_by_turn()
  local all_are_due = true
  for i, one in ipairs(waiters) do
    all_are_due = all_are_due and (one.base ~= 'q' or is_overdue(lock, one.waiter))
    local turn, rank = turn_of(one, all_are_due)
    one.turn, one.rank = turn, rank or i
  end
  table.sort(waiters, function(a, b)
    return a.turn < b.turn or a.turn == b.turn and a.rank < b.rank
  end)
end

-- Reads the holders into "families" and the waiters into "waiters", which become records for the
-- answer, in order; one whose turn is not the usual one has the note turn=N. Of a long queue a part
-- is read: the call says which (args.from, args.to), or it is the first one. Returns the first and
-- the last ticket that are left for another call.
local function read_waiters()
  local from, to = number(args.from), number(args.to)
  if not (from and to) then
    from, to = lock.queue.first, lock.queue.last
    local in_parts = to - from >= PART and to - from < MANY
    if in_parts then read_holders() end
    -- Waiters that nest come first, and are not among these tickets.
    if not in_parts or any_nested_waits() then
      read_whole()
      from = to + 1
    end
  end
  if from <= to then from = read_part(from, to) end
  if next(lists_of(lock)) then sort_by_turn() end
  for i, one in ipairs(waiters) do
    local noted = one.turn and one.turn ~= PLAIN
    waiters[i] = record_for_others(one.waiter) .. (noted and ' turn=' .. one.turn or '')
  end
  return from, to
end
