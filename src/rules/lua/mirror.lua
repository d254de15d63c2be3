-- The mirror of a lock: a key in which programs with another library keep the same lock. Where it
-- is asked for, the lock is held while this key is held, too, for those who hold it. What is known
-- of it is in the field m of the lock:
--   KIND OWNER NAME
-- OWNER is the family that holds both. NAME is the key. Of the kind "string" it is there while it
-- is held, and its value tells whose it is; of the kind "redisson" it is a hash with one field, its
-- holder's. Of the kind "shedlock" it is a row of that name in a table of the database; a host
-- shows it as a string that lasts until lock_until, with locked_by as its value: "HOST rlock UUID"
-- where it is ours. Nobody but an owner of ours writes what tells that it is OWNER's.
--
-- It is in the slot of the lock. Whoever has included this has declared "mirrors".
mirrors = {}

-- The prefix that tells a host of that table; no key of ours begins so.
local SHEDLOCK = '\1shedlock:'

local function mirror_of(kind, holder, name)
  return { kind = kind, holder = holder, name = name,
           key = kind == 'shedlock' and SHEDLOCK .. name or name }
end

local function read_mirror(text)
  return mirror_of(string.match(text, '^(%l+) (%S+) (.+)$'))
end

-- What tells that a string is held with the lock: the value, or its end.
local function mark_of(m)
  if m.kind == 'string' then return 'rlock:' .. m.holder end
  return 'rlock ' .. string.match(m.holder, '[^.]*$')
end

local function has_mark(m)
  local value, mark = redis.call('GET', m.key), mark_of(m)
  return value == mark or m.kind == 'shedlock' and string.sub(value, -#mark - 1) == ' ' .. mark
end

-- As others are told of it, with who has it where that is no secret.
local function label_of(m)
  local by = m.kind == 'shedlock' and redis.call('GET', m.key)
  return 'foreign ' .. m.name .. (by and ' (' .. by .. ')' or '')
end

-- 'free', 'ours', 'taken', or 'misfit': it is no lock of that kind.
local function state_of(m)
  local type = redis.call('TYPE', m.key).ok
  if type == 'none' then return 'free' end
  local ours
  if m.kind ~= 'redisson' and type == 'string' then
    ours = has_mark(m)
  elseif m.kind == 'redisson' and type == 'hash' then
    ours = redis.call('HEXISTS', m.key, m.holder .. ':0') == 1
  else
    return 'misfit'
  end
  return ours and 'ours' or 'taken'
end

local function family_of(lock, m)
  local text = redis.call('HGET', lock.key, 'h:' .. m.holder)
  return text and read_family(m.holder, text), text
end

-- Whoever waits for a message hears of it. What a library that rlock knows nothing of listens to is
-- not there, and a server that forbids to say so delays no more than a lost message.
local function announce(m)
  if m.kind == 'shedlock' then return end
  if m.kind == 'redisson' then
    local braced = string.find(m.name, '{', 1, true) and m.name or '{' .. m.name .. '}'
    redis.pcall('PUBLISH', 'redisson_lock__channel:' .. braced, '0')
    return
  end
  local registry = string.match(m.name, '^(.-):')
  if not registry then return end
  -- Spring's RedisLockRegistry; python-redis-lock
  redis.pcall('PUBLISH', registry .. '-channel:' .. m.name, m.name)
  if registry == 'lock' then
    local signal = 'lock-signal:' .. string.sub(m.name, 6)
    redis.pcall('DEL', signal)
    redis.pcall('LPUSH', signal, '1')
    redis.pcall('PEXPIRE', signal, 1000)
  end
end

-- Whoever holds the lock and the mirror. text: what is asked for, as KIND:NAME.
local function wanted(lock, text)
  local kind, name = string.match(text, '^(%l+):(.+)$')
  return mirror_of(kind, lock.family and lock.family.name or lock.owner, name)
end

-- Has the mirror last as long as its holder's family: not so long any more where that is gone.
function mirrors.follow(lock)
  local m = read_mirror(lock.mirror)
  local family, text = family_of(lock, m)
  if text and not family then return end
  local till = 0
  for _, e in ipairs(family and family.entries or {}) do till = math.max(till, e.deadline) end
  local ours = (not family or till > now) and state_of(m) == 'ours'
  if ours and family then
    redis.call('PEXPIRE', m.key, till - now)
  elseif ours then
    redis.call('DEL', m.key)
    announce(m)
  end
  if not family then
    lock.mirror = nil
    redis.call('HDEL', lock.key, 'm')
  end
end

-- What the mirror that is asked for does not go with; nil if it does.
function mirrors.misfit(lock, text)
  local m, other = wanted(lock, text), lock.mirror and read_mirror(lock.mirror)
  if other and other.holder == m.holder and (other.kind ~= m.kind or other.name ~= m.name) then
    return 'mirror'
  end
  return state_of(m) == 'misfit' and m.kind or nil
end

-- Whether the lock's owner holds it with the mirror.
function mirrors.is_held(lock, text)
  return state_of(wanted(lock, text)) == 'ours'
end

-- Who keeps the lock's owner out where the lock itself does not: nil if nobody does.
function mirrors.obstacle(lock, text)
  if lock.mirror then mirrors.follow(lock) end
  local m = wanted(lock, text)
  if state_of(m) ~= 'taken' then return nil end
  return { count = 1, till = now + math.max(redis.call('PTTL', m.key), 0),
           shown = label_of(m) }
end

-- Takes the mirror for its family, or for longer. who: who asks, and from which host.
function mirrors.take(lock, text, lease, who)
  local m = wanted(lock, text)
  if state_of(m) == 'ours' then
    lease = math.max(lease, redis.call('PTTL', m.key))
  elseif m.kind == 'redisson' then
    redis.call('HSET', m.key, m.holder .. ':0', '1')
  else
    local host = m.kind == 'shedlock' and string.match(who, '^[^- ]%S*')
    redis.call('SET', m.key, (host and string.sub(host, 1, 100) .. ' ' or '') .. mark_of(m))
  end
  redis.call('PEXPIRE', m.key, lease)
  lock.mirror = m.kind .. ' ' .. m.holder .. ' ' .. m.name
  redis.call('HSET', lock.key, 'k', KIND, 'm', lock.mirror)
end

-- Before a renewal: nil as long as the mirror is held with the lock, or is not this holder's at
-- all; otherwise who has it, in the words of a refusal.
function mirrors.loss(lock)
  local m = read_mirror(lock.mirror)
  if m.holder ~= lock.family.name then return nil end
  local state = state_of(m)
  if state == 'ours' and not is_dead(lock.own) then return nil end
  if state ~= 'taken' then return 0, 0, label_of(m) end
  return 1, math.max(redis.call('PTTL', m.key), 0), label_of(m)
end

-- What tells one of their locks from another one of the same name, without telling its secret.
local function token_of(m)
  if m.kind ~= 'redisson' then return redis.sha1hex(redis.call('GET', m.key)) end
  local fields = redis.call('HKEYS', m.key)
  table.sort(fields)
  return redis.sha1hex(table.concat(fields, ' '))
end

-- Takes the mirror from a stranger who has it, by the token that was told of it.
function mirrors.take_away(lock, text, token)
  if lock.mirror then mirrors.follow(lock) end
  local m, own = wanted(lock, text), lock.mirror and read_mirror(lock.mirror)
  m.holder = own and own.name == m.name and own.holder or ''
  local state = state_of(m)
  if state == 'misfit' then return { 'MISFIT', now, m.kind, 1 } end
  if state ~= 'taken' then return { token == '' and 'RELEASED' or 'ABSENT', now } end
  if token ~= token_of(m) then
    local left = math.max(redis.call('PTTL', m.key), 0)
    return { 'HELD', now, 0, 1, 1, left, label_of(m), '', token_of(m) }
  end
  redis.call('DEL', m.key)
  announce(m)
  return { 'RELEASED', now }
end
