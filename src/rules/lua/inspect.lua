-- include database.lua
-- include lock.lua

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

local from, to = number(ARGV[1]), number(ARGV[2])
local goes_on = from and to
if not goes_on then from, to = lock.queue.first, lock.queue.last end

-- Nobody waits for most locks, and of these little needs to be read, or made.
local quiet = not goes_on and from > to and (not lock.held or lock.held.count == 1)
if quiet then
  read_holders()
  quiet = not any_nested_waits()
end
if not quiet then
-- include waiter.lua
-- include queue.lua
-- include waiters.lua
end
if damaged then return { 'MISFIT', now, 'damaged', 1 } end

table.sort(families, function(a, b)
  local one, other = tonumber(a.entries[1].fence), tonumber(b.entries[1].fence)
  return one < other or one == other and a.name < b.name
end)

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

local function read_counters()
  local counters = { whole(number(lock.also) or 0) }
  local told = redis.call('HMGET', KEYS[1], 'c', 'n:refused', 'n:failed', 'n:timed', 'n:lost',
    'n:expired', 'n:revoked')
  for i, text in ipairs(told) do
    local next_number = string.gmatch(text or '', '%d+')
    for _ = 1, i == 1 and 4 or 2 do counters[#counters + 1] = next_number() or '0' end
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
