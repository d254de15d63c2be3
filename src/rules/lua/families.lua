-- Writes holders and those that nest in them.
--- @include "entries"

-- Whether the path of an owner is longer than, and begins with, that of another one.
local function nests_in(owner, ancestor)
  return string.sub(owner, 1, #ancestor + 1) == ancestor .. '.'
end

-- The inverse of read_entry().
local function write_entry(e)
  return string.format('%.0f %.0f ', e.deadline, e.lease) .. e.rest
end

-- The entry of the nearest ancestor of the lock's owner that holds it, and its family; nil if none
-- does. One whose lease has ended holds nothing.
local function find_parent(lock)
  for i = #lock.path - 1, 1, -1 do
    local e, family = find_entry(lock, lock.path[i])
    if e and not is_dead(e) then return e, family end
  end
end

-- Whether the lock, as it is held, lets one more family in that asks for this mode: readers beside
-- readers, or the next slot of a semaphore.
local function has_room(held, mode)
  return not held or mode == 's' and held.mode == 's'
    or mode == 'l' and held.mode == 'l' and held.count < held.limit
end

-- The inverse of read_family().
local function family_text(family)
  local text = write_entry(family.entries[1])
  for i = 2, #family.entries do text = text .. '\n' .. write_entry(family.entries[i]) end
  return text
end

-- Writes the family and notes it in lock.families. One without entries has no field.
local function write_family(lock, family)
  local left = #family.entries > 0
  if left then
    redis.call('HSET', lock.key, 'h:' .. family.name, family_text(family))
  else
    redis.call('HDEL', lock.key, 'h:' .. family.name)
  end
  lock.families[family.name] = left and family or nil
end

-- Writes the family and lock.held, which has changed with it; nil: no owner holds it now.
-- Most calls get by with one command, as each acquisition and each release pays for it.
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

-- Writes the fence that a holder has settled on for all servers of its quorum, in place of the one
-- that it was given here.
local function settle(lock, e, fence)
  e.rest = fence .. string.sub(e.rest, #e.fence + 1)
  e.fence = fence
  if tonumber(fence) > lock.fence then
    lock.fence = tonumber(fence)
    redis.call('HSET', lock.key, 'f', fence)
  end
end
