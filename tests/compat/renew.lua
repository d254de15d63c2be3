-- include lock.lua
-- include member.lua

-- Extends leases, all or none; never makes one, but with grace, where the server may have forgotten it.
-- ARGV: owner, lease (0: the same as before);
--       'grace', not_after (server ms; 0: any time), the server's marker; and to have again what it has forgotten, with a
--       lease: mode, limit, who, and of each key fence and slot;
--       or in a quorum 'member', its marker, which process of the server this is, and what the fences are from now on…
-- {'RENEWED', now, {fence…}, {slot…}, 1 if one of them had run out before, 2 if one was forgotten}
-- {'LOST', now, which key, holders, ms, holder}   {'MISFIT', now, what, which key}   {'STALE', now}
-- In a quorum, RENEWED and LOST as as_member() has them.
local owner, lease, member = ARGV[1], tonumber(ARGV[2]), ARGV[3] == 'member'
local marker, run = ARGV[4], member and ARGV[5]

local locks, lost = {}, nil
for i, key in ipairs(KEYS) do
  local lock, refusal = load_lock(key, owner)
  if not lock then
    if not refusal.err then refusal[4] = i end
    return refusal
  end
  lock.own, lock.family = find_entry(lock, owner)
  locks[i] = lock
  if not lock.own then
    lost = i
    break
  end
end

local function renew(lock, fence)
  local own, held = lock.own, lock.held
  own.lease = lease > 0 and lease or own.lease
  own.deadline = now + own.lease
  keep(lock, own.lease)
  if fence then settle(lock, own, fence) end
  if own.deadline < held.earliest or own.lease > held.longest or held.shown == '-' then
    if held.shown == '-' then held.shown = lock.family.name end
    held.earliest = math.min(held.earliest, own.deadline)
    held.longest = math.max(held.longest, own.lease)
    write_holders(lock, lock.family)
  else
    write_family(lock, lock.family)
  end
end

-- For how many ms nothing new is granted.
local grace = 0
if ARGV[3] == 'grace' then
-- include epoch.lua
  grace = grace_left(ARGV[5], math.max(lease, locks[1].own and locks[1].own.lease or 0))
end

if not lost then
  local fences, slots, late = {}, {}, 0
  for i, lock in ipairs(locks) do
    -- Run out, but nobody came: whoever comes takes the entry out, so it is as good as never run out.
    if is_dead(lock.own) then late = 1 end
    renew(lock, member and ARGV[5 + i])
    fences[i], slots[i] = lock.own.fence, lock.own.slot
  end
  return as_member(marker, run, { 'RENEWED', now, fences, slots, late })
end

-- include slots.lua
-- include queue.lua
-- include holders.lua

if grace > 0 and ARGV[6] then
-- include reclaim.lua
  local function claim_of(i)
    return { mode = ARGV[6], limit = tonumber(ARGV[7]), who = ARGV[8], lease = lease,
             fence = ARGV[7 + 2 * i], slot = tonumber(ARGV[8 + 2 * i]) }
  end
  -- Executed late: it may have been given back meanwhile.
  if tonumber(ARGV[4]) > 0 and now > tonumber(ARGV[4]) then return { 'STALE', now } end
  local possible = true
  for i, key in ipairs(KEYS) do
    local lock, refusal = locks[i], nil
    if not lock then lock, refusal = load_lock(key, owner) end
    if not lock then
      if not refusal.err then refusal[4] = i end
      return refusal
    end
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
return as_member(marker, run, { 'LOST', now, lost, present(locks[lost]) })
