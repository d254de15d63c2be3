-- Takes the lock from exactly the holders named; from nobody if one of them holds it no more.
-- ARGV: 1 to empty the queue too, owners…
-- {'RELEASED', now}   {'CHANGED', now, holder}   {'MISFIT', now, what}
local lock, refusal = load_lock('')
if not lock then return refusal end

local holder = lock.holder
for i = 2, #ARGV do
  if not holder or holder.owner ~= ARGV[i] then
    return { 'CHANGED', now, holder and holder.text or '' }
  end
end

-- Whoever still waits hears of it and queues again, in the order of the tickets.
local function empty_queue()
  local waiters = {}
  for ticket = lock.head, lock.tail do
    local slot = 'q:' .. whole(ticket)
    local text = redis.call('HGET', key, slot)
    local waiter = text and read_waiter(text)
    if text then redis.call('HDEL', key, slot) end
    if waiter then
      redis.call('HDEL', key, 'w:' .. waiter.owner)
      waiters[#waiters + 1] = waiter
    end
  end
  redis.call('HSET', key, 'qh', whole(lock.tail + 1))
  for _, waiter in ipairs(waiters) do poke(waiter) end
end

keep(lock, 0)
if #ARGV > 1 then redis.call('HDEL', key, 'h') end
if ARGV[1] == '1' and lock.tail >= lock.head then
  empty_queue()
elseif #ARGV > 1 then
  poke(head_of_queue(lock))
end
return { 'RELEASED', now }
