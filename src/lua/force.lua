-- Takes the lock from exactly the holders named; from nobody if one of them holds it no more.
-- ARGV: 1 to empty the queue too, owners…
-- {'RELEASED', now}   {'CHANGED', now, holder}   {'MISFIT', now, what}
local lock, refusal = load_lock()
if not lock then return refusal end

local holder = lock.holder
for i = 2, #ARGV do
  if not holder or holder.owner ~= ARGV[i] then
    return { 'CHANGED', now, holder and holder.text or '' }
  end
end

-- Whoever still waits hears of it, and comes back to its ticket.
local function empty_queue()
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^[qw]:') then redis.call('HDEL', key, fields[i]) end
  end
  if lock.tail >= lock.head then redis.call('HSET', key, 'qh', whole(lock.tail + 1)) end
  for i = 1, #fields, 2 do
    poke(string.find(fields[i], '^q:') and read_waiter(fields[i + 1]))
  end
end

keep(lock, 0)
if #ARGV > 1 then redis.call('HDEL', key, 'h') end
if ARGV[1] == '1' then
  empty_queue()
elseif #ARGV > 1 then
  poke(head_of_queue(lock))
end
return { 'RELEASED', now }
