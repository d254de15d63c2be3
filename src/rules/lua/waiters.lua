-- All who wait for a lock, for inspect.lua.

local function add_waiter(base, ticket, text)
  local waiter = text and read_waiter(text)
  if not waiter or waiter.deadline <= now then return end
  waiters[#waiters + 1] = { base = base, ticket = ticket, waiter = waiter }
end

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

-- The places from one ticket to another, so many at once. Where the next part begins.
local function read_part(from, to)
  local names = {}
  for ticket = from, math.min(to, from + PART - 1) do
    names[#names + 1] = place_of(lock.queue, ticket)
  end
  local texts = redis.call('HMGET', KEYS[1], unpack(names))
  for i, text in ipairs(texts) do add_waiter('q', from + i - 1, text) end
  return from + #names
end

if not goes_on then
  local long = to - from >= PART and to - from < MANY
  if long then read_holders() end
  -- Those that nest come first.
  if not long or any_nested_waits() then
    read_whole()
    from = to + 1
  end
end
if from <= to then from = read_part(from, to) end

-- Where some have a priority, a note from which readers make out the order: the lower ones come
-- first, of equals those that are told first; without a note, 12. Behind it, where one stands among
-- those of its list: who was dropped may have come back behind who had come later.
local PLAIN = 12
local overdue = true
local function turn_of(base, waiter)
  if base ~= 'q' then return 1 end
  overdue = overdue and is_overdue(lock, waiter)
  if overdue then return 2 end
  local list, n = list_of(lock, waiter.who)
  if not list then return PLAIN end
  return PLAIN - list.priority, n
end

if next(lists_of(lock)) then
  for i, one in ipairs(waiters) do
    local turn, n = turn_of(one.base, one.waiter)
    one.turn, one.rank = turn, n or i
  end
  table.sort(waiters, function(a, b)
    return a.turn < b.turn or a.turn == b.turn and a.rank < b.rank
  end)
end
for i, one in ipairs(waiters) do
  local noted = one.turn and one.turn ~= PLAIN
  waiters[i] = show_waiter(one.waiter) .. (noted and ' turn=' .. one.turn or '')
end
