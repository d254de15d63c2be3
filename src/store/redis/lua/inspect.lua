-- include database.lua
-- include lock.lua
-- include waiter.lua
-- include queue.lua

-- Reads all there is, but of a long queue the first part alone. Writes nothing.
-- ARGV: how many of the last runs to tell, and ''; or to go on in a long queue, from which ticket
--       to which; where the pauses of GLOBs are (globs.lua; '': nowhere)
-- {'LOCK', now, fence, mode, limit, {holder…}, {waiter…}, {counter…}, {run…}}, waiters in order,
-- those that nest first; counters: a, the numbers of c, and both of n:WHAT for refused, failed,
-- timed, lost, expired and revoked; runs as they are remembered, the oldest first; of a long queue
-- two more: from which ticket to go on, and to which. What is asked for so comes without holders.
-- Where a limit is stored or the lock is paused, two more follow these, which are 0 where they are
-- not needed: the limit or '', and the pause if there is one.
-- {'MISFIT', now, what, 1}
--
-- Holders and the first waiters are of one moment, so that a lock that changes hands meanwhile is
-- not shown with two holders, or none. What is behind them is of later moments, each ticket once.
local PART = 200    -- tickets
local RUNS = 20
local MANY = 100000 -- tickets that no queue has but one that most have left, or that is damaged
local lock, refusal = load_lock(1, nil, 'a')
if not lock then return refusal end

-- Whoever comes first would find the pause.
local globs = lock.fence == 0 and (ARGV[3] or '') ~= '' and redis.pcall('HMGET', ARGV[3], 'p')[1]
if globs and not lock.paused then
-- include globs.lua
  lock.paused = glob_pause(globs, lock.key)
end

local families, waiters, mode, damaged = {}, {}, 's', false

local function add_family(name, text)
  local family = read_family(name, text)
  if family then families[#families + 1] = family end
  damaged = damaged or not family
end

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

-- One holder is known by its name; to find several, the server passes over all fields.
local function read_holders()
  local held = lock.held
  local text = held and held.count == 1 and redis.call('HMGET', KEYS[1], 'h:' .. held.oldest)[1]
  if text then
    add_family(held.oldest, text)
    return
  end
  local fields = held and redis.call('HGETALL', KEYS[1]) or {}
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^h:(.+)$')
    if name then add_family(name, fields[i + 1]) end
  end
end

local function any_nested_waits()
  for _, family in ipairs(families) do
    for _, e in ipairs(family.entries) do
      if redis.call('HMGET', KEYS[1], 'q:' .. e.owner)[1] then return true end
    end
  end
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

local from, to = number(ARGV[1]), number(ARGV[2])
if not (from and to) then
  from, to = lock.queue.first, lock.queue.last
  local long = to - from >= PART and to - from < MANY
  if long then read_holders() end
  -- Those that nest come first.
  if not long or any_nested_waits() then
    read_whole()
    from = to + 1
  end
end
if from <= to then from = read_part(from, to) end
if damaged then return { 'MISFIT', now, 'damaged', 1 } end

table.sort(families, function(a, b)
  local one, other = tonumber(a.entries[1].fence), tonumber(b.entries[1].fence)
  return one < other or one == other and a.name < b.name
end)

-- Where some have a priority, a note from which readers make out the order: the lower ones come
-- first, of equals those that are told first; without a note, 12. Behind it, where one stands among
-- those of its list: who was dropped may have come back behind who had come later.
local LAST = 12
local overdue = true
local function turn_of(base, waiter)
  if base ~= 'q' then return 1 end
  overdue = overdue and is_overdue(lock, waiter)
  if overdue then return 2 end
  local list, n = list_of(lock, waiter.who)
  if not list then return LAST end
  return LAST - list.priority, n
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
  local noted = one.turn and one.turn < LAST
  waiters[i] = show_waiter(one.waiter) .. (noted and ' turn=' .. one.turn or '')
end

local holders = {}
for _, family in ipairs(families) do
  for _, e in ipairs(family.entries) do
    if not is_dead(e) then
      holders[#holders + 1] = write_entry(e)
      if e.mode ~= 's' then mode = e.mode end
    end
  end
end
if #holders == 0 then mode = '' end
local limit = mode == 'l' and lock.held and lock.held.limit or 0

local ENDS = { 'refused', 'failed', 'timed', 'lost', 'expired', 'revoked' }
local function read_counters()
  local names, counters = { 'c' }, { whole(number(lock.also) or 0) }
  for i, what in ipairs(ENDS) do names[1 + i] = 'n:' .. what end
  for i, text in ipairs(redis.call('HMGET', KEYS[1], unpack(names))) do
    local numbers = {}
    for word in string.gmatch(text or '', '%d+') do numbers[#numbers + 1] = word end
    for n = 1, i == 1 and 4 or 2 do counters[#counters + 1] = numbers[n] or '0' end
  end
  return counters
end

local function read_runs(ended)
  local names = {}
  local most = number(ARGV[2]) and 0 or math.min(number(ARGV[1]) or 0, RUNS)
  for n = math.max(ended - most, 0), ended - 1 do names[#names + 1] = 'r:' .. n % RUNS end
  local runs = {}
  for _, run in ipairs(names[1] and redis.call('HMGET', KEYS[1], unpack(names)) or {}) do
    runs[#runs + 1] = run or nil
  end
  return runs
end

local counters = read_counters()
local runs = read_runs(number(counters[2]) or 0)
local answer = { 'LOCK', now, whole(lock.fence), mode, limit, holders, waiters, counters, runs }
if from <= to then answer[10], answer[11] = from, to end
if lock.stored or lock.paused then
  answer[10], answer[11] = answer[10] or 0, answer[11] or 0
  answer[12], answer[13] = lock.stored or '', lock.paused and lock.paused.text
end
return answer
