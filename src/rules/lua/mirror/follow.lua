-- The operations on the mirror that is held with a lock, when the lock is renewed or released. A
-- part of open_mirrors() of mirror.lua, which returns the table "mirrors".

-- Returns the family that holds both the lock and the mirror, and the text of its field. There is
-- none if both are nil or false; the family cannot be read if only the text is returned.
local function family_of(lock, mirror)
  local text = redis.call('HGET', lock.key, 'h:' .. mirror.holder)
  return text and read_family(mirror.holder, text), text
end

-- Tells waiters of other libraries that the mirror is free, as these libraries do it themselves:
-- they are known by the kind of the mirror, or by the beginning of its name. A server that forbids
-- it delays them as a lost message would (pcall).
local function notify_library(mirror)
  if mirror.kind == 'shedlock' then return end
  if mirror.kind == 'redisson' then
    local has_brace = string.find(mirror.name, '{', 1, true)
    local braced = has_brace and mirror.name or '{' .. mirror.name .. '}'
    redis.pcall('PUBLISH', 'redisson_lock__channel:' .. braced, '0')
    return
  end
  local registry = string.match(mirror.name, '^(.-):')
  if not registry then return end
  -- Spring's RedisLockRegistry calls its keys REGISTRY:NAME.
  redis.pcall('PUBLISH', registry .. '-channel:' .. mirror.name, mirror.name)
  if registry == 'lock' then -- python-redis-lock
    local signal = 'lock-signal:' .. string.sub(mirror.name, 6)
    redis.pcall('DEL', signal)
    redis.pcall('LPUSH', signal, '1')
    redis.pcall('PEXPIRE', signal, 1000)
  end
end

-- The answer MIRROR, if the call has not declared all keys that it may have to touch: those of the
-- mirrors that are held with these locks, by a family that it has loaded. nil if it has.
function mirrors.lacking(locks)
  local keys = {}
  for _, lock in ipairs(locks) do
    local mirror = lock.mirror and read_mirror(lock.mirror)
    local is_needed = mirror and lock.families[mirror.holder]
    if is_needed and not is_among_keys(mirror) then keys[#keys + 1] = mirror.key end
  end
  return keys[1] and { 'MIRROR', now, keys } or nil
end

-- Has the lock's mirror follow the family that holds both: it lasts until the last deadline of
-- that, which this call may have changed. If the family is gone, the mirror is released, and
-- lock.mirror and its field are removed. A mirror that the call has not declared is not touched: it
-- ends by itself. Nor is that of a family that cannot be read.
function mirrors.follow(lock)
  local mirror = read_mirror(lock.mirror)
  local family, text = family_of(lock, mirror)
  if text and not family then return end
  local till = 0
  for _, entry in ipairs(family and family.entries or {}) do
    till = math.max(till, entry.deadline)
  end
  local is_to_change = is_among_keys(mirror) and (not family or till > now)
    and state_of(mirror) == 'ours'
  if is_to_change and family then
    redis.call('PEXPIRE', mirror.key, till - now)
  elseif is_to_change then
    redis.call('DEL', mirror.key)
    notify_library(mirror)
  end
  if not family then
    lock.mirror = nil
    redis.call('HDEL', lock.key, 'm')
  end
end

-- Whether the lock's owner has lost the mirror, so that its lock must not be renewed: nil if its
-- family never held the mirror, or holds it while the owner's entry is live. Otherwise three
-- elements of the answer LOST: how many other programs hold the mirror now (0 or 1), the ms until
-- that ends, and its name with the holder.
function mirrors.loss(lock)
  local mirror = read_mirror(lock.mirror)
  if mirror.holder ~= lock.family.name then return nil end
  local state = state_of(mirror)
  if state == 'ours' and not is_dead(lock.own) then return nil end
  if state ~= 'taken' then return 0, 0, label_of(mirror) end
  return 1, math.max(redis.call('PTTL', mirror.key), 0), label_of(mirror)
end
