-- Reads a lock; of a long queue, only the first part. Writes nothing.
--
-- Key: the lock.
-- Arguments (those in brackets may be missing):
--   [runs]       how many of the last runs to tell
--   [from, to]   continue in a long queue, from that ticket to that one
--   [pauses]     the key of the pauses of GLOBs (globs.lua)
--   [epoch]      the server's marker (epoch.lua)
-- Answers:
--   {'LOCK', now, fence, mode, limit, {holder...}, {waiter...}, {counter...}, {run...}}
--     waiters in order, those that nest first; counters: a, the numbers of c, and both of n:WHAT
--     for refused, failed, timed, lost, expired and revoked; runs, the oldest first. Of a long
--     queue two more: from which ticket to continue, and to which; that answer comes without
--     holders. If a limit is stored or the lock is paused, two more follow these, which are 0 if
--     they are not needed: the limit or '', and if there is a pause, that one, and the ms since
--     the first of those that hold for the lock began. If the lock is free and nothing is granted
--     yet to those who ask for grace, for how many ms more
--   {'MISFIT', now, what, 1}
--
-- The holders and the first waiters are of one moment, so that a lock that changes hands meanwhile
-- is not shown with two holders, or none. The rest is of later moments, each ticket once.
--- @include "arguments"
--- @include "families"
--- @include "globs"

local RUNS = 20
local lock, refusal = load_lock(1, nil)
if not lock then return refusal end

-- The pause that the first one to come would find.
local globs = (lock.fence == 0 or lock.paused) and args.pauses
  and redis.pcall('HMGET', args.pauses, 'p')[1]
if globs and not lock.paused then lock.paused = glob_pause(globs, lock.key) end

-- For how many ms the lock has been paused: since the first of the pauses that hold for it began,
-- which may be those in p and po, and those of GLOBs. lock.paused is the one that ends last;
-- another may have begun before it.
local function paused_for()
  local began
  -- Notes when the pause that this text (of read_pause(); false: none) describes began, in "began"
  -- if it is the first one.
  local function note_begin(text)
    local since = text and read_pause(text) and number(string.match(text, '^%d+ %S+ (%d+) '))
    if since then began = math.min(began or since, since) end
  end
  note_begin(lock.paused.text)
  note_begin(redis.call('HMGET', KEYS[1], 'po')[1])
  for glob, record in string.gmatch(globs or '', '(%S+) ([^\n]+)') do
    if glob_matcher(glob)(lock.key) then note_begin(record) end
  end
  return began and math.max(now - began, 0)
end

local families, waiters, damaged = {}, {}, false

-- Adds the family of that name, from the text of its field, to "families"; if that cannot be read,
-- sets "damaged".
local function add_family(name, text)
  local family = read_family(name, text)
  if family then families[#families + 1] = family end
  damaged = damaged or not family
end

-- Reads all families that hold the lock into "families". The name of an only one is known; to find
-- several, the server returns all fields of the lock.
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

-- Whether an owner waits to nest in a holder of "families": then the lock has the field q:OWNER,
-- the queue of those that wait to nest in that holder.
local function any_nested_waits()
  for _, family in ipairs(families) do
    for _, entry in ipairs(family.entries) do
      if redis.call('HMGET', KEYS[1], 'q:' .. entry.owner)[1] then return true end
    end
  end
end

-- The counters of the answer, as texts in one list: the number of field a, the four of c, and the
-- two of each n:WHAT, in the order in which answer.c reads them. One that is missing is '0'.
local function read_counters()
  local counters = { whole(number(lock.acquired) or 0) }
  local texts = redis.call('HMGET', KEYS[1], 'c', 'n:refused', 'n:failed', 'n:timed', 'n:lost',
    'n:expired', 'n:revoked')
  for i, text in ipairs(texts) do
    local next_number, is_c = string.gmatch(text or '', '%d+'), i == 1
    for _ = 1, is_c and 4 or 2 do counters[#counters + 1] = next_number() or '0' end
  end
  return counters
end

-- The records of the latest args.runs runs, oldest first, as far as they are kept. ended: how many
-- runs have ended; the record of number N is in the field r:(N modulo RUNS).
local function read_runs(ended)
  local names = {}
  local most = math.min(number(args.runs) or 0, RUNS)
  for n = math.max(ended - most, 0), ended - 1 do names[#names + 1] = 'r:' .. n % RUNS end
  local runs = {}
  for _, run in ipairs(names[1] and redis.call('HMGET', KEYS[1], unpack(names)) or {}) do
    runs[#runs + 1] = run or nil
  end
  return runs
end

-- For how many ms more the server grants nothing to those who ask for grace, as its marker says
-- (epoch.lua); 0 or less: it grants. This only reads the marker: a server that was started again
-- does not know of its grace before the first request for a lock.
local function grace_left()
  local till = args.epoch and number(redis.pcall('HMGET', args.epoch, 'u')[1])
  return till and till - now or 0
end

-- Returns the lines of all live holders, in the order of the fences of their families, and the mode
-- in which they hold the lock; '' if there is none. Sorts "families".
local function list_holders()
  table.sort(families, function(one, other)
    local fence, other_fence = tonumber(one.entries[1].fence), tonumber(other.entries[1].fence)
    return fence < other_fence or fence == other_fence and one.name < other.name
  end)
  local holders, mode = {}, 's'
  for _, family in ipairs(families) do
    for _, entry in ipairs(family.entries) do
      if not is_dead(entry) then
        holders[#holders + 1] = write_entry(entry)
        if entry.mode ~= 's' then mode = entry.mode end
      end
    end
  end
  return holders, holders[1] and mode or ''
end

-- Adds to the reply what few locks have, at the positions that the first comment of this file says:
-- the tickets "from" and "to" of a queue that is not read to its end, a stored limit, a pause, and
-- the ms of grace.
local function add_rest(reply, from, to, grace)
  if from and from <= to then reply[10], reply[11] = from, to end
  if lock.stored_limit or lock.paused or grace > 0 then
    reply[10], reply[11] = reply[10] or 0, reply[11] or 0
    reply[12], reply[13] = lock.stored_limit or '', lock.paused and lock.paused.text or ''
    reply[14] = lock.paused and paused_for() or 0
  end
  if grace > 0 then reply[15] = grace end
end

-- The answer of this script, from "families", "waiters", and what else it reads now. from, to: the
-- tickets of the queue that are left for another call to read; nil: none.
local function answer(from, to)
  if damaged then return { 'MISFIT', now, 'damaged', 1 } end
  local holders, mode = list_holders()
  local limit = mode == 'l' and lock.held and lock.held.limit or 0
  local counters = read_counters()
  local runs = read_runs(number(counters[2]) or 0)
  local reply = { 'LOCK', now, whole(lock.fence), mode, limit, holders, waiters, counters, runs }
  add_rest(reply, from, to, mode == '' and grace_left() or 0)
  return reply
end

-- Returns whether the lock is quiet: it has one family at most, and no waiters. Then it has read
-- the holders into "families". Most locks are quiet, and for these there is little to read, and the
-- functions further down are not needed.
local function read_if_quiet()
  if args.from or lock.queue.first <= lock.queue.last then return false end
  if lock.held and lock.held.count ~= 1 then return false end
  read_holders()
  return not any_nested_waits()
end

if read_if_quiet() then return answer() end

-- As in acquire.lua, the functions that this does not need come behind it.
--- @include "waiters"

return answer(read_waiters())
