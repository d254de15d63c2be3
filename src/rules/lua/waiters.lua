-- The waiters of a lock, for inspect.lua.
--- @include "queue"

local PART = 200    -- tickets of which one call reads the places
local MANY = 100000 -- tickets: a longer queue has mostly holes, or is damaged
local PLAIN = 12    -- turn of a waiter without a priority

-- Adds the waiter of that place to "waiters", unless it is a dead one, which will be passed over.
local function add_waiter(base, ticket, text)
  local waiter = text and read_waiter(text)
  if not waiter or waiter.deadline <= now then return end
  waiters[#waiters + 1] = { base = base, ticket = ticket, waiter = waiter }
end

-- Reads all fields at once, and makes "families" and "waiters" of them. The waiters that nest come
-- first, as no other waiter goes before their holder ends; then the others, by their tickets.
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

-- Adds the waiters from one ticket to another, as far as one part goes. Returns where the next part
-- begins.
local function read_part(from, to)
  local names = {}
  for ticket = from, math.min(to, from + PART - 1) do
    names[#names + 1] = place_of(lock.queue, ticket)
  end
  local texts = redis.call('HMGET', KEYS[1], unpack(names))
  for i, text in ipairs(texts) do add_waiter('q', from + i - 1, text) end
  return from + #names
end

-- The turn of a waiter where some have a priority: lower numbers come first. And of those in a
-- list, the number there, which their order goes by: one that was dropped may have come back with a
-- lower ticket behind others that had come later.
local function turn_of(one, overdue)
  if one.base ~= 'q' then return 1 end
  if overdue then return 2 end
  local list, n = list_of(lock, one.waiter.who)
  if not list then return PLAIN end
  return PLAIN - list.priority, n
end

-- Sorts the waiters, which were read in the order of arrival, by their turns. Only the oldest
-- waiter can pass those of the lists by being overdue: so one counts as overdue only if all before
-- it are.
local function sort_by_turn()
  local overdue = true
  for i, one in ipairs(waiters) do
    overdue = overdue and (one.base ~= 'q' or is_overdue(lock, one.waiter))
    local turn, n = turn_of(one, overdue)
    one.turn, one.rank = turn, n or i
  end
  table.sort(waiters, function(a, b)
    return a.turn < b.turn or a.turn == b.turn and a.rank < b.rank
  end)
end

-- Reads the holders and the waiters, and makes records of these, with the note turn=N by which
-- readers find the order, if it is not PLAIN; of a long queue a part. Returns which tickets are
-- left, for another call.
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
