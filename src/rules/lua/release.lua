-- include database.lua
-- include lock.lua
-- include slots.lua
-- include memory.lua

-- Gives back what the owner holds and its places in the queues, and wakes whoever is next.
-- ARGV: owner, for how many ms the owner is barred from acquiring afterwards (0: not at all),
--       for how many ms after it was acquired a lock is kept at least,
--       not_after (server ms; 0: any time), 1 if a lease that has run out is not held any more,
--       notes that say how it ended (unused=1: it was no run; refused=1: it waited in vain);
--       with grace the server's marker, and the lease that was asked for
-- {'RELEASED', now}   {'ABSENT', now, which key, holders, ms, holder}, and as in renew.lua the run
-- {'STALE', now}   {'MISFIT', now, what, which key}
local owner, bar, at_least = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local not_after = tonumber(ARGV[4] or 0)
local strict, notes, marker = ARGV[5] == '1', ARGV[6] or '', ARGV[7]

-- Executed late: the owner may have acquired anew.
if not_after > 0 and now > not_after then return { 'STALE', now } end

local locks, worst, quiet, mirrored = {}, nil, bar == 0 and at_least == 0, false
for i = 1, #KEYS do
  local lock, refusal = load_lock(i, owner, 'c', 'q:' .. owner)
  if not lock and refusal.err then return refusal end
  if not lock then
    worst, quiet = refusal, false
  else
    locks[#locks + 1], lock.number, lock.counted = lock, i, lock.also or ''
    mirrored = mirrored or lock.mirror
    lock.own, lock.family = find_entry(lock, owner)
    if strict and lock.own and is_dead(lock.own) then lock.own, lock.run_out = nil, true end
    quiet = quiet and lock.own and not is_dead(lock.own) and not lock.family.entries[2]
      and not lock.place and not lock.mirror and lock.queue.first > lock.queue.last
      and not lock.besides
  end
end

-- Takes the only entry of its family out. HDEL comes first: it passes on a full server.
local function release_quietly(lock)
  local h, field = lock.held, 'h:' .. lock.family.name
  if h.count == 1 then
    redis.call('HDEL', lock.key, 's', 'b', field)
  else
    h.count, h.oldest = h.count - 1, h.oldest ~= lock.family.name and h.oldest or '-'
    redis.call('HDEL', lock.key, field)
    redis.call('HSET', lock.key, 's', state_text(h))
    if lock.own.slot > 0 then
      mark_slot(lock, lock.own.slot, 0)
      redis.call('HSET', lock.key, 'b', lock.slots)
    end
  end
  remember(lock, lock.family, lock.own, notes)
end

-- As in acquire, what is below is left out where nobody nests in it or waits.
if quiet then
  for _, lock in ipairs(locks) do release_quietly(lock) end
  return { 'RELEASED', now }
end

-- include waiter.lua
-- include queue.lua
-- include holders.lua

local mirrors
if mirrored then
-- include mirror.lua
end

-- Behind the words of who it is, once: the same release may be asked for again.
local function note(own)
  if string.find(own.rest, ' kept=1', 1, true) then return end
  own.rest = own.rest .. (string.sub(own.rest, -1) == ' ' and NOBODY or '') .. ' kept=1'
    .. (notes ~= '' and ' ' or '') .. notes
end

-- It was acquired too short a time ago: it runs out when that has passed. Nobody came from the
-- future: the clock was set back.
local function let_run_out(lock, own, family)
  remember(lock, family, own, notes)
  note(own)
  own.deadline, own.lease = math.min(own.since, now) + at_least, at_least
  lock.held.earliest = math.min(lock.held.earliest, own.deadline)
  lock.held.longest = math.max(lock.held.longest, own.lease)
  keep(lock, 0)
  write_holders(lock, family)
end

-- Who is first knows when the lease ends if it was first when it asked last, and the end is the
-- same still.
local function tell_first(lock, parent, family)
  local head = first_in_turn(lock, queue_below(lock, parent))
  if head and head.owner ~= '' and not head.elsewhere
    and obstacle(lock, head.mode, parent, family) then
    poke(lock, head)
  end
end

local function release(lock)
  local own, family = lock.own, lock.family
  local mode

  keep(lock, 0)
  if own and at_least > 0 and own.since + at_least > now then
    let_run_out(lock, own, family)
  elseif own then
    own.ended = notes
    mode = remove(lock, own, family)
  end
  if lock.place and notes == 'refused=1' then count_refusal(lock) end
  local parent, above = find_parent(lock)
  local queue = queue_below(lock, parent)
  local head = lock.place and first_in_turn(lock, queue)
  local was_first = head and head.owner == owner
  leave_queue(lock)
  if was_first or own and not mode then tell_first(lock, parent, above) end
  -- Its acquisition may be under way still, in a socket or a proxy. When it arrives, it finds this.
  if bar > 0 then
    note_barred(lock, owner, bar)
    keep(lock, 0)
  end
  if lock.mirror then mirrors.follow(lock) end
  wake_after(lock, owner, family or above, mode)
  return own
end

-- For how many ms nothing new is granted.
local grace = 0
if marker then
-- include epoch.lua
  grace = grace_left(marker, tonumber(ARGV[8]))
end

-- Whether the server has forgotten it: then nobody can have got it since.
local function is_forgotten(lock, holders)
  return grace > 0 and holders == 0 and not lock.run_out
    and not string.find(';' .. lock.barred, ';!' .. owner .. '=', 1, true)
end

for _, lock in ipairs(locks) do
  if not release(lock) then
    local absent = { 'ABSENT', now, lock.number, present(lock) }
    absent[7] = revocation(lock, owner)
    if not is_forgotten(lock, absent[4]) then worst = worst or absent end
  end
end
return worst or { 'RELEASED', now }
