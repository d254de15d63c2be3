-- Extends leases, all or none; never makes one.
-- ARGV: owner, lease (0: the same as before); in a quorum: its marker, and what the fences are from now on
-- {'RENEWED', now, {fence…}, {slot…}, 1 if one of them had run out before, memory}
-- {'LOST', now, which key, holders, ms, holder, memory}   {'MISFIT', now, what, which key}
-- memory: in a quorum, otherwise 0
local owner, lease, marker = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local locks, fences, slots, late = {}, {}, {}, 0
for i, key in ipairs(KEYS) do
  local lock, refusal = load_lock(key, owner)
  if not lock then
    if not refusal.err then refusal[4] = i end
    return refusal
  end
  lock.own, lock.family = find_entry(lock, owner)
  if not lock.own then
    local holders, left, shown = present(lock)
    return { 'LOST', now, i, holders, left, shown, marker and memory(marker) or 0 }
  end
  locks[i] = lock
end
for i, lock in ipairs(locks) do
  local own, held = lock.own, lock.held
  -- Run out, but nobody came: whoever comes takes the entry out, so it is as good as never run out.
  if is_dead(own) then late = 1 end
  own.lease = lease > 0 and lease or own.lease
  own.deadline = now + own.lease
  keep(lock, own.lease)
  settle(lock, own, number(ARGV[3 + i]))
  write_family(lock, lock.family)
  if own.deadline < held.earliest or own.lease > held.longest or held.shown == '-' then
    if held.shown == '-' then held.shown = lock.family.name end
    held.earliest = math.min(held.earliest, own.deadline)
    held.longest = math.max(held.longest, own.lease)
    write_held(lock)
  end
  fences[i], slots[i] = whole(own.fence), own.slot
end
return { 'RENEWED', now, fences, slots, late, marker and memory(marker) or 0 }
