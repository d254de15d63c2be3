-- Has an owner hold again what the server has forgotten, while nothing new is granted. A claim says
-- what: owner, lease, mode, limit, who, fence and slot, and since when.
--- @include "attempts"
--- @include "holders"

-- The longest path that two owners have in common: their nearest common ancestor, or one of them,
-- if the other nests in it or is the same; '' if there is none. Of A.B.C and A.B.D it is A.B.
local function common_ancestor(one, other)
  local path, found = lineage(other), ''
  for i, name in ipairs(lineage(one)) do
    if path[i] ~= name then break end
    found = name
  end
  return found
end

-- Whether the family keeps the owner of the claim from holding the lock besides: readers can share
-- it, and so can owners of different slots of one semaphore.
local function is_in_the_way(lock, family, claim)
  local mode = mode_of(family)
  local is_same_semaphore = mode == 'l' and claim.mode == 'l' and lock.held.limit == claim.limit
  if is_same_semaphore then return family.entries[1].slot == claim.slot end
  local are_readers = mode == 's' and claim.mode == 's'
  return not are_readers
end

-- Whether an entry of the family still holds the lock: its lease has not ended.
local function is_alive(family)
  for _, entry in ipairs(family.entries) do
    if not is_dead(entry) then return true end
  end
  return false
end

-- Compares a claim with the holders that the server still knows: a copy that the server was
-- restored from may have old ones. Returns a table: "kin", the family with the same token and a
-- common ancestor, which the owner belongs to, or nil; and "stale", a list of the families that are
-- in the way with a lower token: they held the lock before the owner, so they must be gone. Returns
-- nil if the owner cannot hold the lock again: it is barred, the lock was taken away from it, a
-- holder cannot be read, or one with a higher token has come after it.
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

-- The family that the owner joins: that of its kin, or, if that is nil, a new one. A family is
-- named after the owner in which all of it nest, so the kin may have to be renamed: then the field
-- of its former name is removed. The caller adds the owner's entry, and writes the family.
local function join_family(lock, owner, kin)
  local family = { name = kin and common_ancestor(kin.name, owner) or owner,
                   entries = kin and kin.entries or {} }
  if kin and kin.name ~= family.name then
    redis.call('HDEL', lock.key, 'h:' .. kin.name)
    lock.families[kin.name] = nil
  end
  return family
end

-- Makes the owner of the claim a holder again, with the token and slot that it had, and removes the
-- stale holders. lock.held may be unknown or old, so prune() makes it anew out of the families.
-- known: the table that find_known_holders() has returned. Sets lock.own.
local function reclaim(lock, claim, known)
  local rest = string.format('%s %s %.0f %s %.0f ', claim.fence, claim.owner, claim.since,
    claim.mode, claim.slot) .. with_attempt(claim.who)
  lock.own = { deadline = now + claim.lease, lease = claim.lease, fence = claim.fence,
               owner = claim.owner, since = claim.since, mode = claim.mode,
               slot = claim.slot, rest = rest }
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
