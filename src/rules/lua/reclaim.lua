-- Has an owner hold again what the server has forgotten, while nothing new is granted.
--- @include "holders"

-- The nearest ancestor of both, or one of them; '' if there is none.
local function common(one, other)
  local path, found = lineage(other), ''
  for i, name in ipairs(lineage(one)) do
    if path[i] ~= name then break end
    found = name
  end
  return found
end

local function is_in_the_way(lock, family, claim)
  local mode = mode_of(family)
  if mode == 'l' and claim.mode == 'l' and lock.held.limit == claim.limit then
    return family.entries[1].slot == claim.slot
  end
  return mode ~= 's' or claim.mode ~= 's'
end

local function is_alive(family)
  for _, e in ipairs(family.entries) do
    if not is_dead(e) then return true end
  end
  return false
end

-- Finds the holders that are still known: one of the same family has the same token; one with a
-- lower token held it before the owner, so it must be gone; one with a higher token came after the
-- owner, which must be gone then. Returns false if it cannot hold it again.
local function look_around(lock, claim)
  lock.stale = {}
  if string.find(';' .. lock.barred, ';!' .. owner .. '=', 1, true) then return false end
  if is_barred(lock) then return false end
  local families = lock.held and all_families(lock) or {}
  if not families then return false end
  for _, family in ipairs(families) do
    local fence = family.entries[1].fence
    if fence == claim.fence and common(family.name, owner) ~= '' then
      lock.kin = family
    elseif is_alive(family) and is_in_the_way(lock, family, claim) then
      if tonumber(fence) >= tonumber(claim.fence) then return false end
      lock.stale[#lock.stale + 1] = family
    end
  end
  return true
end

-- Its family is named after the owner in which all of it nest.
local function join_family(lock)
  local kin = lock.kin
  local family = { name = kin and common(kin.name, owner) or owner,
                   entries = kin and kin.entries or {} }
  if kin and kin.name ~= family.name then
    redis.call('HDEL', lock.key, 'h:' .. kin.name)
    lock.families[kin.name] = nil
  end
  return family
end

local function reclaim(lock, claim)
  local rest = string.format('%s %s %.0f %s %.0f ', claim.fence, owner, now, claim.mode, claim.slot)
    .. with_attempt(claim.who)
  lock.own = { deadline = now + lease, lease = lease, fence = claim.fence,
               owner = owner, since = now, mode = claim.mode, slot = claim.slot, rest = rest }
  redis.call('HSET', lock.key, 'k', lock.kind,
    'f', whole(math.max(lock.fence, tonumber(claim.fence))))
  keep(lock, lease)
  for _, family in ipairs(lock.stale) do
    thin_out(lock, family, function() return true end)
    write_family(lock, family)
  end
  leave_queue(lock)
  local family = join_family(lock)
  family.entries[#family.entries + 1] = lock.own
  write_family(lock, family)
  lock.held = { limit = claim.limit, count = 0 }
  prune(lock)
end

-- Has it hold all its locks again. Returns the answer; nil if it cannot have one of them.
local function reclaim_all(fences, slots)
  local claims = {}
  for i = 1, LOCKS do
    local lock, refusal = locks[i], nil
    if not lock then lock, refusal = load_families(i, owner) end
    if not lock then return refusal end
    lock.own, lock.family = find_entry(lock, owner)
    locks[i] = lock
    claims[i] = { mode = args.mode, limit = tonumber(args.limit or 0), who = args.who,
                  fence = fences[i], slot = tonumber(slots[i]) }
    if not lock.own and not look_around(lock, claims[i]) then return nil end
  end
  local answer = { 'RENEWED', now, {}, {}, 2 }
  for i, lock in ipairs(locks) do
    if lock.own then renew(lock) else reclaim(lock, claims[i]) end
    answer[3][i], answer[4][i] = lock.own.fence, lock.own.slot
  end
  return answer
end
