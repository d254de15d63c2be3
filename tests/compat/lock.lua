-- What every script of a lock starts with: one hash holds all there is of one lock.
--
--   k            kind and version of the layout, "lock/1"
--   f            last fencing token issued
--   s            how it is held:  MODE LIMIT FAMILIES EARLIEST LONGEST SHOWN   (none: free)
--   b            which slots of a semaphore are taken, six to a character: "0" none of them, "1" the first, "2"
--                the second, … "o" all
--   h:OWNER      a family: OWNER and those that nest in it, one line each:
--                DEADLINE LEASE FENCE OWNER SINCE MODE SLOT WHO
--   q, q:OWNER   the queue, and that of those who nest in OWNER:  FIRST LAST CALLED
--   q:N, q:OWNER:N   a waiter's place:  DEADLINE OWNER SINCE MODE WHO; MODE is in capitals where it waits for
--                another of its keys alone
--   w:OWNER      which place it has
--   t            owners that must not acquire:  OWNER=UNTIL;OWNER=UNTIL;… and, as !OWNER, those it was taken from, who
--                must not say that it was forgotten
--
-- MODE is x (exclusive), s (shared) or l (semaphore). An owner is the path of its ancestors' tokens and its
-- own, A.B.C, so whoever nests in A starts with "A.". Times are the server's, in ms, read once. Who is dead is
-- decided by deadlines; the key's own time to live only clears away what nobody has touched for a week.
--
-- No call but inspect and a purge grows with the number of holders or waiters. Waiters are looked at one by one
-- from the first. Of the holders, EARLIEST tells a time before which none of them can be dead: only who is in
-- somebody's way after it looks at them all, and finds a later EARLIEST, or some of them dead.
--
-- Memory: Redis checks maxmemory at the first write of a script alone, and PEXPIRE and HDEL pass it. So
-- keep() comes first wherever someone who is in already must be served on a full server.
local KIND = 'lock/1'
local WEEK = 604800000
local WALK = 10000 -- tickets

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Exact up to 2^53, where .. and tostring() round to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- Nothing but digits, and exact: tonumber() takes inf, nan, 0x10 and 1e3 as well, with which a loop over
-- tickets would never end. What a pattern has found to be digits needs only be less than EXACT.
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
              owner = owner, since = tonumber(since), mode = mode, slot = tonumber(slot) }
  return e.deadline < EXACT and e.lease < EXACT and #fence <= 16 and e.since < EXACT and e.slot < EXACT
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
  local mode, limit, count, earliest, longest, shown =
    string.match(text, '^([xsl]) (%d+) (%d+) (%d+) (%d+) ([^ ]+)$')
  if not shown then return nil end
  local h = { mode = mode, limit = tonumber(limit), count = tonumber(count), earliest = tonumber(earliest),
              longest = tonumber(longest), shown = shown }
  return h.limit < EXACT and h.count < EXACT and h.earliest < EXACT and h.longest < EXACT and h or nil
end

local function read_queue(base, text)
  if not text then return { base = base, first = 1, last = 0, called = 0 } end
  local first, last, called = string.match(text, '^(%d+) (%d+) (%d+)$')
  local queue = { base = base, first = number(first), last = number(last), called = number(called) }
  local sound = queue.first and queue.last and queue.called and queue.first >= 1
    and queue.last >= queue.first - 1
  return sound and queue or nil
end

-- The lock ----------------------------------------------------------------------------------------

-- The lock as "owner", who may be nobody, finds it; or nil and the refusal to return.
local function load_lock(key, owner)
  local path = lineage(owner or '')
  local fields = { 'k', 'f', 's', 'b', 't', 'q', 'w:' .. path[#path], 'h:' .. path[1] }
  for i = 2, #path do fields[7 + i] = 'h:' .. path[i] end
  local v = redis.pcall('HMGET', key, unpack(fields))
  if v.err then
    if string.find(v.err, 'WRONGTYPE', 1, true) then return nil, { 'MISFIT', now, 'damaged' } end
    return nil, v
  end
  if v[1] and v[1] ~= KIND then return nil, { 'MISFIT', now, v[1] } end
  local fence, held, queue = number(v[2] or '0'), v[3] and read_held(v[3]), read_queue('q', v[6])
  local families = { [path[1]] = v[8] and read_family(path[1], v[8]) or nil }
  local sound = (v[1] or redis.call('EXISTS', key) == 0) and fence and (held or not v[3]) and queue
    and (not v[7] or string.find(v[7], '^q.*:%d+$'))
    and (not v[5] or string.gsub(v[5], '[^=;]+=%d+;', '') == '') and (not v[8] or families[path[1]] and held)
  for i = 2, #path do
    local name, text = path[i], v[7 + i]
    families[name] = text and read_family(name, text) or nil
    sound = sound and (not text or families[name] and held)
  end
  if not sound then return nil, { 'MISFIT', now, 'damaged' } end
  return { key = key, owner = owner, path = path, fence = fence, held = held, limit = held and held.limit,
           slots = v[4] or '', barred = v[5] or '', queue = queue, place = v[7] or nil, families = families }
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

-- Keeps the key for a week after the longest lease.
local function keep(lock, lease)
  local longest = lock.held and lock.held.longest or 0
  redis.call('PEXPIRE', lock.key, WEEK + math.max(lease, longest))
end

local function state_text(h)
  return string.format('%s %.0f %.0f %.0f %.0f ', h.mode, h.limit, h.count, h.earliest, h.longest) .. h.shown
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
    redis.call('HSET', lock.key, 's', state_text(lock.held), 'h:' .. family.name, family_text(family))
  elseif lock.held then
    write_family(lock, family)
    redis.call('HSET', lock.key, 's', state_text(lock.held))
  else
    lock.families[family.name], lock.slots = nil, ''
    redis.call('HDEL', lock.key, 's', 'b', 'h:' .. family.name)
  end
end
