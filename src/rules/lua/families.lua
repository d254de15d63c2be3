-- Writes holders and those that nest in them.
--- @include "entries"

-- Whether an owner nests in another one, its ancestor: the path of an owner has the paths of all
-- its ancestors before its own token, as A.B.C nests in A.B and in A.
local function nests_in(owner, ancestor)
  return string.sub(owner, 1, #ancestor + 1) == ancestor .. '.'
end

-- The line of h:OWNER that describes the entry: the inverse of read_entry().
local function write_entry(entry)
  return string.format('%.0f %.0f ', entry.deadline, entry.lease) .. entry.rest
end

-- The entry of the nearest ancestor of lock.owner that holds the lock, and the family of that
-- entry; nil if no ancestor holds it. One whose lease has ended does not.
local function find_parent(lock)
  for i = #lock.path - 1, 1, -1 do
    local entry, family = find_entry(lock, lock.path[i])
    if entry and not is_dead(entry) then return entry, family end
  end
end

-- Whether one more family that asks for this mode can hold the lock besides those that do: readers
-- beside readers, or the next slot of a semaphore. held: how the lock is held (lock.held); nil: it
-- is free.
local function has_room(held, mode)
  return not held or mode == 's' and held.mode == 's'
    or mode == 'l' and held.mode == 'l' and held.count < held.limit
end

-- The text of the field h:NAME with the lines of all entries: the inverse of read_family().
local function family_text(family)
  local text = write_entry(family.entries[1])
  for i = 2, #family.entries do text = text .. '\n' .. write_entry(family.entries[i]) end
  return text
end

-- Writes the family to its field and to lock.families; one that has no entries left is removed from
-- both.
local function write_family(lock, family)
  local has_entries = #family.entries > 0
  if has_entries then
    redis.call('HSET', lock.key, 'h:' .. family.name, family_text(family))
  else
    redis.call('HDEL', lock.key, 'h:' .. family.name)
  end
  lock.families[family.name] = has_entries and family or nil
end

-- Writes the family as write_family() does, and lock.held, which the caller of this function has
-- changed with it; if that is nil, the lock is free now, and loses what says how it is held. Mostly
-- it takes one command, not two, as each acquisition and each release pays for it.
local function write_holders(lock, family)
  if #family.entries > 0 then
    lock.families[family.name] = family
    redis.call('HSET', lock.key, 's', state_text(lock.held),
      'h:' .. family.name, family_text(family))
  elseif lock.held then
    write_family(lock, family)
    redis.call('HSET', lock.key, 's', state_text(lock.held))
  else
    lock.families[family.name], lock.slots = nil, ''
    redis.call('HDEL', lock.key, 's', 'b', 'h:' .. family.name)
  end
end

-- Replaces the fence of an entry by the one (text) that its owner has settled on for all servers of
-- a quorum; each of them may have issued another one first. Raises lock.fence to it, and writes
-- that; the caller writes the entry.
local function settle(lock, entry, fence)
  entry.rest = fence .. string.sub(entry.rest, #entry.fence + 1)
  entry.fence = fence
  if tonumber(fence) > lock.fence then
    lock.fence = tonumber(fence)
    redis.call('HSET', lock.key, 'f', fence)
  end
end
