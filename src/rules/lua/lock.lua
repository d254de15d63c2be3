-- What every script of a lock starts with: one hash holds all there is of one lock.
--
--   k            kind and version of the layout, "lock/1"
--   f            last fencing token issued
--   s            how it is held:  MODE LIMIT FAMILIES EARLIEST LONGEST OLDEST   (none: free)
--   b            which slots of a semaphore are taken, six to a character: "0" none of them, "1"
--                the first, "2" the second, … "o" all
--   h:OWNER      a family: OWNER and those that nest in it, one line each:
--                DEADLINE LEASE FENCE OWNER SINCE MODE SLOT WHO; notes like kept=1 may follow in
--                WHO: hears=1, whoever it is stops when it is told to; asked=WHEN by=WHOM why=TEXT,
--                somebody has told it to give the lock back (ask() in holders.lua), and it is not
--                renewed any more
--   q, q:OWNER   the queue, and that of those who nest in OWNER:  FIRST LAST CALLED
--   q:N, q:OWNER:N   a waiter's place:  DEADLINE OWNER SINCE MODE WHO; MODE is in capitals where it
--                waits for another of its keys alone. Behind WHO, of one that takes the lock from a
--                message alone:  offer=TOKEN/LIMIT/UNTIL/LEASE
--   w:OWNER      which place it has
--   o            how long others may go before who waits, in ms, and of each priority with which
--                a waiter is in q (0 only beside lower ones), a list:
--                BOUND PRIORITY:FIRST:LAST:CALLED …
--   o:PRIORITY:N the Nth ticket of that list; where it is in, the waiter notes as rank=PRIORITY:N
--   g:QUEUE:GROUP    of a group of which the last to queue up alone waits: who that is
--   g            who was sent away from the queue lately, oldest first, one line each:
--                OWNER RECORD, as of the waiter that came instead
--   l            of a semaphore whose limit the store keeps: that limit, whatever LIMIT says
--   p            a pause, as a waiter's record of whoever has paused it; DEADLINE is its end; with
--                the note glob=WHAT, it is that of a GLOB (globs.lua)
--   po           that of this lock alone, while p is one of a GLOB that ends later
--   m            another program's key that is held besides (mirror.lua)
--   a            how often it was acquired
--   c            of the runs that have ended:  HOW_MANY WAITED BEGAN LAST, where WAITED is what
--                they have waited in all, in ms, BEGAN when the latest began that succeeded, and
--                LAST when one that succeeded ended last
--   n:WHAT       of failed, timed, lost, expired and revoked runs, and of refused requests:
--                HOW_MANY LAST
--   r:N          the run with the number N modulo 20, from 0 on:
--                ENDED FENCE OWNER SINCE MODE SLOT WHO; notes behind WHO say how it ended
--   t            owners that must not acquire:  OWNER=UNTIL;OWNER=UNTIL;… and, as !OWNER, those it
--                was taken from, who must not say that it was forgotten
--
-- MODE is x (exclusive), s (shared) or l (semaphore). An owner is the path of its ancestors' tokens
-- and its own, A.B.C, so whoever nests in A starts with "A.". Times are the server's, in ms, read
-- once. Who is dead is decided by deadlines; the key's own time to live only clears away what
-- nobody has touched for a week, or a year where it keeps a limit, and no pause before its end.
--
-- No call but inspect and a purge grows with the number of holders or waiters. Waiters are looked
-- at one by one from the first. Of the holders, EARLIEST tells a time before which none of them can
-- be dead: only who is in somebody's way after it looks at them all, and finds a later EARLIEST, or
-- some of them dead. OLDEST is the family that has held it for longest, to be told to others; "-"
-- where it has left and nobody has looked at them all since: then who is refused does so where
-- there is little to look at.
--
-- Memory: Redis checks maxmemory at the first write of a script alone, and PEXPIRE and HDEL pass
-- it. So keep() comes first wherever someone who is in already must be served on a full server.
local KIND = 'lock/1'
local WEEK = 604800000
local YEAR = 31536000000
local WALK = 10000 -- tickets

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- The same as text: to write a number takes longer than to find a field.
local us_text = clock[1] .. string.sub('00000' .. clock[2], -6)
local now_text = string.sub(us_text, 1, -4)

-- Exact up to 2^53, where .. and tostring() round to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- Nothing but digits, and exact: tonumber() takes inf, nan, 0x10 and 1e3 as well, with which a loop
-- over tickets would never end. What a pattern has found to be digits needs only be less than
-- EXACT.
local EXACT = 9007199254740992
local function number(text)
  local n = text and string.find(text, '^%d+$') and tonumber(text)
  return n and n < EXACT and n or nil
end

-- owner's ancestors, outermost first, and itself.
local function lineage(owner)
  if not string.find(owner, '.', 1, true) then return { owner } end
  local path = {}
  for dot in string.gmatch(owner, '()%.') do path[#path + 1] = string.sub(owner, 1, dot - 1) end
  path[#path + 1] = owner
  return path
end

local function nests_in(owner, ancestor)
  return string.sub(owner, 1, #ancestor + 1) == ancestor .. '.'
end

-- Records -----------------------------------------------------------------------------------------

-- Only deadline and lease change; the text of the rest is kept, and of the fence.
local function read_entry(line)
  local deadline, lease, rest, fence, owner, since, mode, slot =
    string.match(line, '^(%d+) (%d+) ((%d+) ([^ ]+) (%d+) ([xsl]) (%d+) .*)$')
  if not slot then return nil end
  local e = { deadline = tonumber(deadline), lease = tonumber(lease), rest = rest, fence = fence,
              owner = owner, since = tonumber(since), since_text = since, mode = mode,
              slot = tonumber(slot) }
  return e.deadline < EXACT and e.lease < EXACT and #fence <= 16 and e.since < EXACT
    and e.slot < EXACT
    and e or nil
end

local function write_entry(e)
  return string.format('%.0f %.0f ', e.deadline, e.lease) .. e.rest
end

local function is_dead(e)
  return e.deadline <= now
end

-- nil where a line cannot be read, or there is none.
local function read_family(name, text)
  if not string.find(text, '\n', 1, true) then
    local e = read_entry(text)
    return e and { name = name, entries = { e } }
  end
  local family = { name = name, entries = {} }
  for line in string.gmatch(text, '[^\n]+') do
    local e = read_entry(line)
    if not e then return nil end
    table.insert(family.entries, e)
  end
  return #family.entries > 0 and family or nil
end

local function read_held(text)
  local mode, limit, count, earliest, longest, oldest =
    string.match(text, '^([xsl]) (%d+) (%d+) (%d+) (%d+) ([^ ]+)$')
  if not oldest then return nil end
  local h = { mode = mode, limit = tonumber(limit), count = tonumber(count),
              earliest = tonumber(earliest),
              longest = tonumber(longest), oldest = oldest }
  return h.limit < EXACT and h.count < EXACT and h.earliest < EXACT and h.longest < EXACT and h
    or nil
end

-- Whether one of those who hold it so may be dead.
local function is_in_doubt(held)
  return held.earliest <= now or held.earliest > now + held.longest
end

local function has_room(held, mode)
  return not held or mode == 's' and held.mode == 's'
    or mode == 'l' and held.mode == 'l' and held.count < held.limit
end

local function read_queue(base, text)
  if not text then return { base = base, first = 1, last = 0, called = 0 } end
  local first, last, called = string.match(text, '^(%d+) (%d+) (%d+)$')
  local queue = { base = base, first = number(first), last = number(last), called = number(called) }
  local sound = queue.first and queue.last and queue.called and queue.first >= 1
    and queue.last >= queue.first - 1
  return sound and queue or nil
end

-- When a pause ends, and its text; nil if it is over.
local function read_pause(text)
  local till = number(string.match(text, '^(%d+) '))
  return till and till > now and { till = till, text = text } or nil
end

-- The lock ----------------------------------------------------------------------------------------

-- The lock of KEYS[which] as "owner", who may be nobody, finds it; or nil and the refusal to
-- return. also, besides: two more fields, whose text it has.
local function load_lock(which, owner, also, besides)
  local key, path = KEYS[which], lineage(owner or '')
  local fields = { 'k', 'f', 's', 'b', 't', 'q', 'm', 'l', 'p', 'w:' .. path[#path],
                   'h:' .. path[1] }
  for i = 2, #path do fields[10 + i] = 'h:' .. path[i] end
  local known = #fields
  fields[known + 1], fields[known + 2] = also, besides
  local v = redis.pcall('HMGET', key, unpack(fields))
  if v.err then
    local damaged = string.find(v.err, 'WRONGTYPE', 1, true)
    return nil, damaged and { 'MISFIT', now, 'damaged', which } or v
  end
  if v[1] and v[1] ~= KIND then return nil, { 'MISFIT', now, v[1], which } end
  local fence, held, queue = number(v[2] or '0'), v[3] and read_held(v[3]), read_queue('q', v[6])
  local stored = v[8] and number(v[8]) or nil
  local families = { [path[1]] = v[11] and read_family(path[1], v[11]) or nil }
  local sound = (v[1] or redis.call('EXISTS', key) == 0) and fence and (held or not v[3]) and queue
    and (stored or not v[8])
    and (not v[10] or string.find(v[10], '^q.*:%d+$'))
    and (not v[5] or string.gsub(v[5], '[^=;]+=%d+;', '') == '')
    and (not v[7] or string.find(v[7], '^%l+ %S+ .'))
    and (not v[11] or families[path[1]] and held)
  for i = 2, #path do
    local name, text = path[i], v[10 + i]
    families[name] = text and read_family(name, text) or nil
    sound = sound and (not text or families[name] and held)
  end
  if not sound then return nil, { 'MISFIT', now, 'damaged', which } end
  if stored and held and held.mode == 'l' then held.limit = stored end
  return { key = key, owner = owner, path = path, fence = fence, held = held, stored = stored,
           limit = stored or held and held.limit, slots = v[4] or '', barred = v[5] or '',
           queue = queue, place = v[10] or nil, families = families, mirror = v[7] or nil,
           paused = v[9] and read_pause(v[9]) or nil, also = v[known + 1],
           besides = v[known + 2] }
end

-- owner's entry and the family that it is in.
local function find_entry(lock, owner)
  local path = owner == lock.owner and lock.path or lineage(owner)
  for i = 1, #path do
    local family = lock.families[path[i]]
    for n = 1, family and #family.entries or 0 do
      if family.entries[n].owner == owner then return family.entries[n], family end
    end
  end
end

-- The nearest ancestor of the lock's owner that holds it, and its family.
local function find_parent(lock)
  for i = #lock.path - 1, 1, -1 do
    local e, family = find_entry(lock, lock.path[i])
    if e and not is_dead(e) then return e, family end
  end
end

-- Keeps the key for a week after the longest lease, or for a year.
local function keep(lock, lease)
  local longest = lock.held and lock.held.longest or 0
  if lock.paused then longest = math.max(longest, lock.paused.till - now) end
  redis.call('PEXPIRE', lock.key, (lock.stored and YEAR or WEEK) + math.max(lease, longest))
end

-- Every new one is greater than all before, also where the server has forgotten them. least: what a
-- quorum proposes.
local function next_fence(lock, least)
  lock.fence = math.max(lock.fence + 1, now_us, least or 0)
  return lock.fence == now_us and us_text or whole(lock.fence)
end

local function state_text(h)
  return string.format('%s %.0f %.0f %.0f %.0f ', h.mode, h.limit, h.count, h.earliest, h.longest)
    .. h.oldest
end

local function family_text(family)
  local text = write_entry(family.entries[1])
  for i = 2, #family.entries do text = text .. '\n' .. write_entry(family.entries[i]) end
  return text
end

local function write_family(lock, family)
  local left = #family.entries > 0
  if left then
    redis.call('HSET', lock.key, 'h:' .. family.name, family_text(family))
  else
    redis.call('HDEL', lock.key, 'h:' .. family.name)
  end
  lock.families[family.name] = left and family or nil
end

-- Writes down the family and, as it changes with it, how the lock is held.
local function write_holders(lock, family)
  if #family.entries > 0 then
    lock.families[family.name] = family
    redis.call('HSET', lock.key, 's', state_text(lock.held),
      'h:' .. family.name, family_text(family))
  elseif lock.held then
    write_family(lock, family)
    redis.call('HSET', lock.key, 's', state_text(lock.held))
  else
    lock.families[family.name], lock.slots = nil, ''
    redis.call('HDEL', lock.key, 's', 'b', 'h:' .. family.name)
  end
end
