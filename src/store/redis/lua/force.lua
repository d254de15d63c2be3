-- include database.lua
-- include lock.lua
-- include slots.lua
-- include memory.lua
-- include queue.lua
-- include holders.lua

-- Takes the lock from exactly the holders named; from nobody if one of them holds it no more.
-- ARGV: 1 to empty the queue too, owners…
-- {'RELEASED', now}   {'CHANGED', now, 1, holders, ms, holder}   {'MISFIT', now, what, 1}
local lock, refusal = load_lock(1)
if not lock then return refusal end

for i = 2, #ARGV do
  for _, name in ipairs(lineage(ARGV[i])) do
    local text = not lock.families[name] and redis.call('HGET', lock.key, 'h:' .. name)
    if text then lock.families[name] = read_family(name, text) end
  end
  if not lock.held or not find_entry(lock, ARGV[i]) then
    return { 'CHANGED', now, 1, present(lock) }
  end
end

-- Whoever still waits hears of it, and comes back to its ticket.
local function empty_all_queues()
  local fields = redis.call('HGETALL', lock.key)
  local waiters = {}
  for i = 1, #fields, 2 do
    if fields[i] == 'o' or fields[i] ~= 'q' and string.find(fields[i], '^[goqw]:') then
      redis.call('HDEL', lock.key, fields[i])
      waiters[#waiters + 1] = read_waiter(fields[i + 1])
    end
  end
  if lock.queue.last >= lock.queue.first then
    lock.queue.first = lock.queue.last + 1
    write_queue(lock, lock.queue)
  end
  for _, waiter in ipairs(waiters) do poke(lock, waiter) end
end

keep(lock, 0)
for i = 2, #ARGV do
  local own, family = find_entry(lock, ARGV[i])
  -- A dead one may have gone with another.
  if own then
    note_barred(lock, '!' .. ARGV[i], own.lease)
    own.ended = not is_dead(own) and 'revoked=1'
    wake_after(lock, ARGV[i], family, remove(lock, own, family))
  end
end
if lock.mirror then
  local mirrors
-- include mirror.lua
  mirrors.follow(lock)
end
if ARGV[1] == '1' then empty_all_queues() end
return { 'RELEASED', now }
