-- include database.lua
-- include lock.lua
-- include slots.lua
-- include memory.lua
-- include waiter.lua
-- include queue.lua
-- include holders.lua

-- Takes the lock from exactly the holders named; from nobody if one of them holds it no more.
-- ARGV: 1 to empty the queue too; how: 'now', 'ask' (those that hear of it are asked, the others
--       lose it), 'again' (they were asked before, and some may have gone) or 'over' (the same, and
--       those that were asked lose it); notes that say by whom, and why: by=WHOM why=TEXT; owners…
-- {'RELEASED', now}   {'CHANGED', now, 1, holders, ms, holder}   {'MISFIT', now, what, 1}
-- {'ASKED', now, 1, how many were asked and hold it still, ms until the last lease of them ends,
--  one of them}
local how, notes = ARGV[2], ARGV[3]
local lock, refusal = load_lock(1)
if not lock then return refusal end

for i = 4, #ARGV do
  for _, name in ipairs(lineage(ARGV[i])) do
    local text = not lock.families[name] and redis.call('HGET', lock.key, 'h:' .. name)
    if text then lock.families[name] = read_family(name, text) end
  end
  if (how == 'now' or how == 'ask') and not (lock.held and find_entry(lock, ARGV[i])) then
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

local asked = { 'ASKED', now, 1, 0, 0, '' }
local function note_asked(e)
  asked[4], asked[5] = asked[4] + 1, math.max(asked[5], e.deadline - now)
  if asked[4] == 1 then asked[6] = write_entry(e) end
end

local function revoke(e, family)
  if can_be_asked(e) then poke(lock, e) end -- it finds out at once
  note_barred(lock, '!' .. e.owner, e.lease)
  e.ended = not is_dead(e) and 'revoked=1' .. (notes ~= '' and ' ' or '') .. notes
  wake_after(lock, e.owner, family, remove(lock, e, family))
end

keep(lock, 0)
for i = 4, #ARGV do
  local own, family
  -- A dead one may have gone with another.
  if lock.held then own, family = find_entry(lock, ARGV[i]) end
  -- One that was not asked is another acquisition than the one that was.
  local over = how == 'now'
    or own and how == 'over' and string.find(own.rest, ' asked=', 1, true)
  if own and not over and can_be_asked(own) then
    ask(lock, family, own, notes)
    note_asked(own)
  elseif own then
    revoke(own, family)
  end
end
if lock.mirror then
  local mirrors
-- include mirror.lua
  mirrors.follow(lock)
end
if ARGV[1] == '1' then empty_all_queues() end
if asked[4] > 0 then return asked end
return { 'RELEASED', now }
