-- include lock.lua
-- include member.lua

-- Extends leases, all or none; never makes one.
-- ARGV: owner, lease (0: the same as before); in a quorum: its marker, which process of the server this is, and
--       what the fences are from now on…
-- {'RENEWED', now, {fence…}, {slot…}, 1 if one of them had run out before}
-- {'LOST', now, which key, holders, ms, holder}   {'MISFIT', now, what, which key}
-- In a quorum, RENEWED and LOST as as_member() has them.
local owner, lease, marker, run = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

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

if not lost then
  local fences, slots, late = {}, {}, 0
  for i, lock in ipairs(locks) do
    -- Run out, but nobody came: whoever comes takes the entry out, so it is as good as never run out.
    if is_dead(lock.own) then late = 1 end
    renew(lock, ARGV[4 + i])
    fences[i], slots[i] = lock.own.fence, lock.own.slot
  end
  return as_member(marker, run, { 'RENEWED', now, fences, slots, late })
end

-- include slots.lua
-- include queue.lua
-- include holders.lua

return as_member(marker, run, { 'LOST', now, lost, present(locks[lost]) })
