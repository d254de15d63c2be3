-- include database.lua
-- include lock.lua
-- include member.lua

-- Extends leases, all or none; never makes one, but with grace, where the server may have forgotten
-- it.
-- ARGV: owner, lease (0: the same as before), 1 if a lease that has run out is lost,
--       not_after (server ms; 0: any time);
--       'handed': the lock was handed over to it, so that it is to call the next who can go;
--       or 'grace' and the server's marker; and to have again what it has forgotten, with a lease:
--       mode, limit, who, and of each key fence and slot;
--       or in a quorum 'member', its marker, which process of the server this is, and what the
--       fences are from now on…
-- {'RENEWED', now, {fence…}, {slot…}, 1 if one of them had run out before, 2 if one was forgotten}
-- {'LOST', now, which key, holders, ms, holder}; one more where somebody has taken it away: the run
-- that it was, as memory.lua writes it
-- {'ASKED', now, which key, 1, ms, the owner's entry}: it is to give it back, nothing is renewed
-- {'MISFIT', now, what, which key}   {'STALE', now}
-- In a quorum, RENEWED, LOST and ASKED as as_member() has them.
local owner, lease, strict = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local not_after = tonumber(ARGV[4] or 0)
local member, marker = ARGV[5] == 'member', ARGV[6]
local run = member and ARGV[7]
local renewed

-- Executed late: whoever sent this does not wait for it any more, may have given it back, and may
-- have died since.
if not_after > 0 and now > not_after then return { 'STALE', now } end

local locks, lost, mirrored = {}, nil, false
for i = 1, #KEYS do
  local lock, refusal = load_lock(i, owner)
  if not lock then return refusal end
  lock.own, lock.family = find_entry(lock, owner)
  locks[i], mirrored = lock, mirrored or lock.mirror
  if not lock.own or strict and is_dead(lock.own) then
    lost = i
    break
  end
  if string.find(lock.own.rest, ' asked=', 1, true) then
    return as_member(marker, run, { 'ASKED', now, i, 1, math.max(lock.own.deadline - now, 0),
                                    write_entry(lock.own) })
  end
end

local mirrors
if mirrored and not lost then
-- include mirror.lua
  for i, lock in ipairs(locks) do
    if lock.mirror then
      local holders, ms, shown = mirrors.loss(lock)
      if shown then return as_member(marker, run, { 'LOST', now, i, holders, ms, shown }) end
    end
  end
end

local function renew(lock, fence)
  local own, held = lock.own, lock.held
  own.lease = lease > 0 and lease or own.lease
  own.deadline = now + own.lease
  keep(lock, own.lease)
  if fence then settle(lock, own, fence) end
  local alone = held.oldest == '-' and held.count == 1
  if own.deadline < held.earliest or own.lease > held.longest or alone then
    if alone then held.oldest = lock.family.name end
    held.earliest = math.min(held.earliest, own.deadline)
    held.longest = math.max(held.longest, own.lease)
    write_holders(lock, lock.family)
  else
    write_family(lock, lock.family)
  end
end

-- For how many ms nothing new is granted.
local grace = 0
if ARGV[5] == 'grace' then
-- include epoch.lua
  grace = grace_left(marker, math.max(lease, locks[1].own and locks[1].own.lease or 0))
end

if not lost then
  local fences, slots, late = {}, {}, 0
  for i, lock in ipairs(locks) do
    -- Run out, but nobody came: whoever comes takes the entry out, so it is as good as never run
    -- out.
    if is_dead(lock.own) then late = 1 end
    renew(lock, member and ARGV[7 + i])
    if lock.mirror then mirrors.follow(lock) end
    fences[i], slots[i] = lock.own.fence, lock.own.slot
  end
  renewed = as_member(marker, run, { 'RENEWED', now, fences, slots, late })
  if ARGV[5] ~= 'handed' or locks[1].own.mode == 'x' then return renewed end
end

-- include slots.lua
-- include memory.lua
-- include waiter.lua
-- include queue.lua
-- include holders.lua

if renewed then
  wake(locks[1])
  return renewed
end

if grace > 0 and ARGV[7] then
-- include reclaim.lua
  local function claim_of(i)
    return { mode = ARGV[7], limit = tonumber(ARGV[8]), who = ARGV[9], lease = lease,
             fence = ARGV[8 + 2 * i], slot = tonumber(ARGV[9 + 2 * i]) }
  end
  local possible = true
  for i = 1, #KEYS do
    local lock, refusal = locks[i], nil
    if not lock then lock, refusal = load_lock(i, owner) end
    if not lock then return refusal end
    lock.own, lock.family = find_entry(lock, owner)
    locks[i] = lock
    possible = possible and (lock.own or look_around(lock, claim_of(i)))
  end
  if possible then
    local fences, slots = {}, {}
    for i, lock in ipairs(locks) do
      if lock.own then renew(lock) else reclaim(lock, claim_of(i)) end
      fences[i], slots[i] = lock.own.fence, lock.own.slot
    end
    return { 'RENEWED', now, fences, slots, 2 }
  end
end
local answer = { 'LOST', now, lost, present(locks[lost]) }
answer[7] = revocation(locks[lost], owner)
return as_member(marker, run, answer)
