-- Has an owner hold again what the server has forgotten, while nothing new is granted. A claim says
-- what: owner, lease, mode, limit, who, fence and slot.
--- @include "attempts"
--- @include "holders"

-- The nearest ancestor of both, or one of them; '' if there is none.
local function common_ancestor(one, other)
  local path, found = lineage(other), ''
  for i, name in ipairs(lineage(one)) do
    if path[i] ~= name then break end
    found = name
  end
  return found
end

-- Whether the family and the claimant cannot both hold the lock: readers can, and owners of
-- different slots of one semaphore.
local function is_in_the_way(lock, family, claim)
  local mode = mode_of(family)
  if mode == 'l' and claim.mode == 'l' and lock.held.limit == claim.limit then
    return family.entries[1].slot == claim.slot
  end
  return mode ~= 's' or claim.mode ~= 's'
end

-- Whether one of the family still holds the lock.
local function is_alive(family)
  for _, e in ipairs(family.entries) do
    if not is_dead(e) then return true end
  end
  return false
end

-- Finds the holders that the server still knows, as a copy that it was restored from may have old
-- ones: one of the same family, "kin", has the same token; one that is in the way with a lower
-- token held it before the owner, so it must be gone ("stale"); one with a higher token came after
-- the owner, which must be gone then. Returns nil if the owner cannot hold it again.
local function find_known_holders(lock, claim)
  local known = { stale = {} }
  if was_taken_away(lock, claim.owner) then return nil end
  if is_barred(lock) then return nil end
  local families = {}
  if lock.held then families = all_families(lock) end
  if not families then return nil end
  for _, family in ipairs(families) do
    local fence = family.entries[1].fence
    if fence == claim.fence and common_ancestor(family.name, claim.owner) ~= '' then
      known.kin = family
    elseif is_alive(family) and is_in_the_way(lock, family, claim) then
      if tonumber(fence) >= tonumber(claim.fence) then return nil end
      table.insert(known.stale, family)
    end
  end
  return known
end

-- The family of the owner, named after the owner in which all of it nest. kin: the known part of
-- it; nil: none. If that has had another name, its field goes; the caller writes the family.
local function join_family(lock, owner, kin)
  local family = { name = kin and common_ancestor(kin.name, owner) or owner,
                   entries = kin and kin.entries or {} }
  if kin and kin.name ~= family.name then
    redis.call('HDEL', lock.key, 'h:' .. kin.name)
    lock.families[kin.name] = nil
  end
  return family
end

-- Makes the owner of the claim a holder again, with the token and slot that it had, and drops the
-- stale holders. lock.held may be unknown or old, so prune() makes it anew of the families. known:
-- what find_known_holders() has returned.
local function reclaim(lock, claim, known)
  local rest = string.format('%s %s %.0f %s %.0f ', claim.fence, claim.owner, now, claim.mode,
    claim.slot) .. with_attempt(claim.who)
  lock.own = { deadline = now + claim.lease, lease = claim.lease, fence = claim.fence,
               owner = claim.owner, since = now, mode = claim.mode, slot = claim.slot,
               rest = rest }
  make_key(lock)
  redis.call('HSET', lock.key, 'k', lock.kind,
    'f', whole(math.max(lock.fence, tonumber(claim.fence))))
  keep_key(lock, claim.lease)
  local function is_stale() return true end
  for _, family in ipairs(known.stale) do
    remove_entries(lock, family, is_stale)
    write_family(lock, family)
  end
  leave_queue(lock)
  local family = join_family(lock, claim.owner, known.kin)
  family.entries[#family.entries + 1] = lock.own
  write_family(lock, family)
  lock.held = { limit = claim.limit, count = 0 }
  prune(lock)
end
