-- What every script starts with: one hash holds all there is of one lock.
--
--   k           kind and version of the layout, "lock/1"
--   f           last fencing token issued
--   h           the holder:  DEADLINE LEASE FENCE OWNER SINCE WHO
--   q:TICKET    a waiter:    DEADLINE OWNER SINCE WHO
--   w:OWNER     its ticket
--   qh qt       first and last ticket of the queue; what left it leaves a hole between them
--   t           owners that must not acquire any more:  OWNER=UNTIL;OWNER=UNTIL;…
--
-- Times are the server's, in ms, read once. Who is dead is decided by deadlines; the key's own time
-- to live only clears away what nobody has touched for a week. Waiters are looked at one by one
-- from the head, so that no call but inspect grows with the length of the queue.
--
-- Memory: Redis checks maxmemory at the first write of a script alone, and PEXPIRE and HDEL pass it. So
-- keep() comes first wherever someone who is in already must be served on a full server.
local KIND = 'lock/1'
local WEEK = 604800000

local key = KEYS[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Exact up to 2^53, where .. and tostring() round to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

local function read_holder(text)
  local deadline, lease, fence, owner, since, who =
    string.match(text, '^(%d+) (%d+) (%d+) (%S+) (%d+) (.*)$')
  if not deadline then return nil end
  return { deadline = tonumber(deadline), lease = tonumber(lease), fence = tonumber(fence),
           owner = owner, since = since, who = who, text = text }
end

local function write_holder(h)
  return whole(h.deadline) .. ' ' .. whole(h.lease) .. ' ' .. whole(h.fence) .. ' ' .. h.owner
    .. ' ' .. h.since .. ' ' .. h.who
end

local function read_waiter(text)
  local deadline, owner, since, who = string.match(text, '^(%d+) (%S+) (%d+) (.*)$')
  if not deadline then return nil end
  return { deadline = tonumber(deadline), owner = owner, since = since, who = who }
end

local function write_waiter(w)
  return whole(w.deadline) .. ' ' .. w.owner .. ' ' .. w.since .. ' ' .. w.who
end

-- The lock as "owner" finds it, or nil and the refusal to return: {'MISFIT', now, what it is instead}.
local function load_lock(owner)
  local v = redis.call('HMGET', key, 'k', 'f', 'h', 'qh', 'qt', 't', 'w:' .. owner)
  if v[1] and v[1] ~= KIND then return nil, { 'MISFIT', now, v[1] } end
  local lock = {
    known = v[1] and true, fence = tonumber(v[2] or 0), holder = v[3] and read_holder(v[3]),
    head = tonumber(v[4] or 1), tail = tonumber(v[5] or 0), barred = v[6] or '',
    ticket = v[7] and tonumber(v[7]),
  }
  if not lock.fence or not lock.head or not lock.tail or (v[3] and not lock.holder)
    or (v[7] and not lock.ticket) then
    return nil, { 'MISFIT', now, 'damaged' }
  end
  return lock
end

local function living(holder)
  return holder and holder.deadline > now and holder or nil
end

local function keep(lease)
  redis.call('PEXPIRE', key, WEEK + lease)
end

-- The first living waiter; whoever calls is alive. The dead ones before it, and the holes, go for good.
local function head_of_queue(lock, caller)
  local first = lock.head
  while lock.head <= lock.tail do
    local slot = 'q:' .. whole(lock.head)
    local text = redis.call('HGET', key, slot)
    local waiter = text and read_waiter(text)
    if waiter and (waiter.deadline > now or waiter.owner == caller) then
      if lock.head ~= first then redis.call('HSET', key, 'qh', whole(lock.head)) end
      return waiter
    end
    if text then redis.call('HDEL', key, slot) end
    if waiter then redis.call('HDEL', key, 'w:' .. waiter.owner) end
    lock.head = lock.head + 1
  end
  if lock.head ~= first then redis.call('HSET', key, 'qh', whole(lock.head)) end
  return nil
end

local function leave_queue(owner, ticket)
  if ticket then redis.call('HDEL', key, 'q:' .. whole(ticket), 'w:' .. owner) end
end

-- Pub/sub only makes it quick: a lost message costs one heartbeat. A server that forbids it, too.
local function poke(waiter)
  if waiter then redis.pcall('PUBLISH', key .. ':' .. waiter.owner, '1') end
end
