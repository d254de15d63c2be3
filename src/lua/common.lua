-- What every script starts with: one hash holds all there is of one lock.
--
--   k           kind and version of the layout, "lock/1"
--   f           last fencing token issued
--   h           the holder:  DEADLINE LEASE FENCE OWNER SINCE WHO
--   q:TICKET    a waiter:    DEADLINE OWNER SINCE WHO
--   w:OWNER     its ticket
--   qh qt       first and last ticket of the queue; what left it leaves a hole between them
--   t           owners that must not acquire:  OWNER=UNTIL;OWNER=UNTIL;…
--
-- Times are the server's, in ms, read once. Who is dead is decided by deadlines; the key's own time
-- to live only clears away what nobody has touched for a week. Waiters are looked at one by one
-- from the head, so that no call but inspect and a purge grows with the length of the queue.
--
-- Memory: Redis checks maxmemory at the first write of a script alone, and PEXPIRE and HDEL pass it. So
-- keep() comes first wherever someone who is in already must be served on a full server.
local KIND = 'lock/1'
local WEEK = 604800000
local WALK = 10000 -- tickets

local key = KEYS[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Exact up to 2^53, where .. and tostring() round to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- Nothing but digits, and exact: tonumber() takes inf, nan, 0x10 and 1e3 as well, with which a loop over
-- tickets would never end.
local function number(text)
  local n = text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text)
  return n and n < 9007199254740992 and n or nil
end

local function read_holder(text)
  local deadline, lease, fence, owner, since, who =
    string.match(text, '^(%d+) (%d+) (%d+) (%S+) (%d+) (.*)$')
  deadline, lease, fence = number(deadline), number(lease), number(fence)
  if not deadline or not lease or not fence then return nil end
  return { deadline = deadline, lease = lease, fence = fence, owner = owner, since = since, who = who,
           text = text }
end

local function write_holder(h)
  return whole(h.deadline) .. ' ' .. whole(h.lease) .. ' ' .. whole(h.fence) .. ' ' .. h.owner
    .. ' ' .. h.since .. ' ' .. h.who
end

local function read_waiter(text)
  local deadline, owner, since, who = string.match(text, '^(%d+) (%S+) (%d+) (.*)$')
  deadline = number(deadline)
  if not deadline then return nil end
  return { deadline = deadline, owner = owner, since = since, who = who }
end

local function write_waiter(w)
  return whole(w.deadline) .. ' ' .. w.owner .. ' ' .. w.since .. ' ' .. w.who
end

-- The lock as "owner", who may be nobody, finds it; or nil and the refusal to return.
local function load_lock(owner)
  local v = redis.call('HMGET', key, 'k', 'f', 'h', 'qh', 'qt', 't', owner and 'w:' .. owner or 'w')
  if v[1] and v[1] ~= KIND then return nil, { 'MISFIT', now, v[1] } end
  local lock = {
    fence = number(v[2] or '0'), holder = v[3] and read_holder(v[3]),
    head = number(v[4] or '1'), tail = number(v[5] or '0'), barred = v[6] or '',
    ticket = v[7] and number(v[7]),
  }
  local sound = (v[1] or redis.call('EXISTS', key) == 0)
    and lock.fence and (lock.holder or not v[3])
    and lock.head and lock.tail and lock.head >= 1 and lock.tail >= lock.head - 1
    and (not v[7] or lock.ticket and lock.ticket >= 1 and lock.ticket <= lock.tail)
    and (not v[6] or string.gsub(lock.barred, '[^=;]+=%d+;', '') == '')
  if not sound then return nil, { 'MISFIT', now, 'damaged' } end
  return lock
end

local function living(holder)
  return holder and holder.deadline > now and holder or nil
end

-- Keeps the key for a week after its lease, or the holder's if that is longer.
local function keep(lock, lease)
  local left = lock.holder and lock.holder.deadline - now or 0
  redis.call('PEXPIRE', key, WEEK + math.max(lease, left))
end

-- The first living waiter; whoever calls is alive. The dead ones before it, and the holes, go for good.
-- One call looks at so many tickets only, the next goes on: then nobody is first yet. most: the longest that a
-- place is kept, where that is known; a clock that was set back must not keep a dead waiter longer.
local function head_of_queue(lock, caller, most)
  local first = lock.head
  local waiter
  while lock.head <= lock.tail and not waiter do
    local slot = 'q:' .. whole(lock.head)
    local text = redis.call('HGET', key, slot)
    local found = text and read_waiter(text)
    if found and most and found.deadline > now + most then
      found.deadline = now + most
      redis.call('HSET', key, slot, write_waiter(found))
    end
    if lock.head == lock.ticket then
      waiter = { owner = caller }
    elseif found and found.deadline > now then
      waiter = found
    elseif lock.head - first == WALK then
      waiter = { owner = '' }
    else
      if text then redis.call('HDEL', key, slot) end
      if found then redis.call('HDEL', key, 'w:' .. found.owner) end
      lock.head = lock.head + 1
    end
  end
  if lock.head ~= first then redis.call('HSET', key, 'qh', whole(lock.head)) end
  return waiter
end

local function leave_queue(lock, owner)
  if lock.ticket then redis.call('HDEL', key, 'q:' .. whole(lock.ticket), 'w:' .. owner) end
  lock.ticket = nil
end

-- Pub/sub only makes it quick: a lost message costs one heartbeat. A server that forbids it, too.
local function poke(waiter)
  if waiter then redis.pcall('PUBLISH', key .. ':' .. waiter.owner, '1') end
end
