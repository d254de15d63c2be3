-- Takes the lock, or a place in its queue.
-- ARGV: owner, lease, how long a place in the queue is kept without a call (0: do not queue),
--       not_after (server ms; 0: any time), ticket held so far (0: none), 1 to count the place, who
-- {'GRANTED', now, fence}   {'QUEUED', now, ticket, place, 1 if queued anew, holder}
-- {'HELD', now, how many are ahead, holder}   {'STALE', now}   {'BARRED', now}   {'MISFIT', now, what}
local owner, who = ARGV[1], ARGV[7]
local lease, patience, not_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ticket, count = tonumber(ARGV[5]), ARGV[6] == '1'

-- Executed late: whoever sent this has given up and may have released already.
if not_after > 0 and now > not_after then return { 'STALE', now } end
local lock, refusal = load_lock(owner)
if not lock then return refusal end

local function is_barred()
  local at = string.find(lock.barred, owner .. '=', 1, true)
  local deadline = at and number(string.match(lock.barred, '^(%d+);', at + #owner + 1))
  return at and (not deadline or deadline > now)
end
if is_barred() then return { 'BARRED', now } end

local function grant(fence, since)
  local h = { deadline = now + lease, lease = lease, fence = fence, owner = owner, since = since, who = who }
  -- In this order a newcomer is refused on a full server, and one without the right to expire keys holds nothing.
  redis.call('HSET', key, 'k', KIND, 'f', whole(math.max(fence, lock.fence)))
  keep(lock, lease)
  redis.call('HSET', key, 'h', write_holder(h))
  leave_queue(lock, owner)
  return { 'GRANTED', now, whole(fence) }
end

-- Tickets are issued once. A waiter that was dropped while it could not call (stopped, cut off, the server
-- stopped) comes back to its own, so that an outage does not turn the order around.
local function join_queue()
  if ticket > 0 and ticket <= lock.tail and redis.call('HEXISTS', key, 'q:' .. whole(ticket)) == 0 then
    lock.ticket = ticket
    lock.head = math.min(lock.head, ticket)
  else
    lock.ticket = lock.tail + 1
    lock.tail = lock.ticket
  end
  redis.call('HSET', key, 'k', KIND, 'qh', whole(lock.head), 'qt', whole(lock.tail),
    'w:' .. owner, whole(lock.ticket))
end

-- Keeps the place for another while, without a change of what is known of the waiter.
local function sign_on()
  local text = redis.call('HGET', key, 'q:' .. whole(lock.ticket))
  local waiter = text and read_waiter(text) or { owner = owner, since = whole(now), who = who }
  waiter.deadline = now + patience
  redis.call('HSET', key, 'q:' .. whole(lock.ticket), write_waiter(waiter))
  keep(lock, 0)
end

-- How many tickets from the head to mine are in use. Holes are left out on request alone: it takes time.
local function place()
  if not count or lock.ticket - lock.head > WALK then return lock.ticket - lock.head + 1 end
  local used = 1
  for from = lock.head, lock.ticket - 1, 1000 do
    local slots = {}
    for n = from, math.min(from + 999, lock.ticket - 1) do slots[#slots + 1] = 'q:' .. whole(n) end
    for _, text in ipairs(redis.call('HMGET', key, unpack(slots))) do
      if text then used = used + 1 end
    end
  end
  return used
end

-- Its entry could not be read and was taken for a hole.
if lock.ticket and lock.ticket < lock.head then lock.ticket = nil end
local dropped = patience > 0 and ticket > 0 and not lock.ticket
if lock.ticket or dropped then keep(lock, lease) end
local holder = lock.holder
-- The same request again: its answer was lost. An entry past its deadline was passed over by no one.
if holder and holder.owner == owner then
  keep(lock, lease)
  return grant(holder.fence, holder.since)
end
-- A clock that was set back must not stretch a dead holder's lease.
if holder and holder.deadline > now + holder.lease then
  holder.deadline = now + holder.lease
  holder.text = write_holder(holder)
  keep(lock, 0)
  redis.call('HSET', key, 'h', holder.text)
end

holder = living(holder)
if dropped then join_queue() end
local head = head_of_queue(lock, owner, patience > 0 and patience)
if not holder and (not head or head.owner == owner) then
  return grant(math.max(lock.fence + 1, now_us), whole(now))
end
local shown = holder and holder.text or ''
if patience == 0 then
  return { 'HELD', now, lock.tail - lock.head + 1, shown }
end
if not lock.ticket then join_queue() end
sign_on()
if not holder then poke(head) end
return { 'QUEUED', now, lock.ticket, place(), dropped and 1 or 0, shown }
