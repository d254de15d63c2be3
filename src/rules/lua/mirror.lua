-- The mirror of a lock: a key in which programs with another library keep the same lock. If it is
-- asked for, the lock is held together with this key. The field m of the lock describes it:
--   KIND OWNER NAME
-- OWNER is the family that holds both. NAME is the key. Of the kind "string", the key exists while
-- it is held, and its value tells the holder; of the kind "redisson" it is a hash with one field,
-- its holder's. Of the kind "shedlock" it is a row of that name in a table of the database; a host
-- shows it as a string that lasts until lock_until, with locked_by as its value: "HOST rlock UUID"
-- if it is ours. Only an owner of ours writes the mark that it is OWNER's.
--
-- The mirror is in the slot of the lock, and among KEYS: a node of a Cluster says when it lacks a
-- declared key, and takes any other key that it lacks for a free one. A call that does not know the
-- mirror is told it by
--   {'MIRROR', now, {key...}}: nothing was done; call again with these behind the locks
--- @include "families"

-- Returns the operations on mirrors, as a table of functions. They are made by a call of this one,
-- since most calls of a script need none of them.
local function open_mirrors()
  local mirrors = {}

  -- The prefix that tells a host of that table; no key of ours begins so.
  local SHEDLOCK = '\1shedlock:'

  -- A mirror m: kind, holder and name as in the field m; and the key that has it.
  local function mirror_of(kind, holder, name)
    return { kind = kind, holder = holder, name = name,
             key = kind == 'shedlock' and SHEDLOCK .. name or name }
  end

  -- The mirror that the text of the field m describes.
  local function read_mirror(text)
    return mirror_of(string.match(text, '^(%l+) (%S+) (.+)$'))
  end

  -- The mark that a string is held with the lock: its value, or the end of its value.
  local function mark_of(m)
    if m.kind == 'string' then return 'rlock:' .. m.holder end
    return 'rlock ' .. string.match(m.holder, '[^.]*$')
  end

  -- Whether the value of a string is the mark; or, in a row, ends with it, behind the host.
  local function has_mark(m)
    local value, mark = redis.call('GET', m.key), mark_of(m)
    return value == mark or m.kind == 'shedlock' and string.sub(value, -#mark - 1) == ' ' .. mark
  end

  -- As others are told of it, with its holder if that is not a secret.
  local function label_of(m)
    local by = m.kind == 'shedlock' and redis.call('GET', m.key)
    return 'foreign ' .. m.name .. (by and ' (' .. by .. ')' or '')
  end

  -- 'free'; 'ours': it has the mark of m.holder; 'taken': by another; or 'misfit': it is not a lock
  -- of that kind.
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

  -- Whether the call has declared the mirror's key, and so may touch it.
  local function is_among_keys(m)
    for i = LOCKS + 1, #KEYS do
      if KEYS[i] == m.key then return true end
    end
    return false
  end

  -- The family that holds both, and its text; nil without a text: there is none; nil with one: it
  -- cannot be read.
  local function family_of(lock, m)
    local text = redis.call('HGET', lock.key, 'h:' .. m.holder)
    return text and read_family(m.holder, text), text
  end

  -- Tells the waiters of libraries that rlock knows that the mirror is free, as these libraries do
  -- it themselves. A server that forbids it delays them as a lost message would.
  local function notify_library(m)
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

  -- The mirror that is asked for, as KIND:NAME, with the holder that it would have: the family of
  -- the lock's owner, or the owner, if it has none yet.
  local function wanted_mirror(lock, text)
    local kind, name = string.match(text, '^(%l+):(.+)$')
    return mirror_of(kind, lock.family and lock.family.name or lock.owner, name)
  end

  -- The answer to a call that lacks a mirror which is held by a family that was loaded; nil if it
  -- has all of them.
  function mirrors.lacking(locks)
    local keys = {}
    for _, lock in ipairs(locks) do
      local m = lock.mirror and read_mirror(lock.mirror)
      if m and not is_among_keys(m) and lock.families[m.holder] then keys[#keys + 1] = m.key end
    end
    return keys[1] and { 'MIRROR', now, keys } or nil
  end

  -- Has the mirror last until the last deadline of its holder's family, which this call may have
  -- changed. If that family is gone, the mirror ends, and lock.mirror is forgotten. A mirror that
  -- is not among KEYS is not touched: it ends by itself. Nor is that of a family that cannot be
  -- read.
  function mirrors.follow(lock)
    local m = read_mirror(lock.mirror)
    local family, text = family_of(lock, m)
    if text and not family then return end
    local till = 0
    for _, e in ipairs(family and family.entries or {}) do till = math.max(till, e.deadline) end
    local ours = is_among_keys(m) and (not family or till > now) and state_of(m) == 'ours'
    if ours and family then
      redis.call('PEXPIRE', m.key, till - now)
    elseif ours then
      redis.call('DEL', m.key)
      notify_library(m)
    end
    if not family then
      lock.mirror = nil
      redis.call('HDEL', lock.key, 'm')
    end
  end

  -- Why the mirror that is asked for cannot be held: the holder has another one, or its key has
  -- something else; nil if it can.
  function mirrors.misfit(lock, text)
    local m, other = wanted_mirror(lock, text), lock.mirror and read_mirror(lock.mirror)
    if other and other.holder == m.holder and (other.kind ~= m.kind or other.name ~= m.name) then
      return 'mirror'
    end
    return state_of(m) == 'misfit' and m.kind or nil
  end

  -- Whether the lock's owner holds it with the mirror.
  function mirrors.is_held(lock, text)
    return state_of(wanted_mirror(lock, text)) == 'ours'
  end

  -- The obstacle, if another program holds the mirror, and so keeps the lock's owner out though the
  -- lock does not; nil if none does. A mark that was left by a holder of ours is removed first.
  function mirrors.obstacle(lock, text)
    if lock.mirror then mirrors.follow(lock) end
    local m = wanted_mirror(lock, text)
    if state_of(m) ~= 'taken' then return nil end
    return { count = 1, till = now + math.max(redis.call('PTTL', m.key), 0),
             shown = label_of(m) }
  end

  -- Takes the mirror for its family, or, if it is ours already, has it last for the lease (ms) at
  -- least, as others of the family may need it for longer. who: the WHO of the caller, whose host a
  -- row names.
  function mirrors.take(lock, text, lease, who)
    local m = wanted_mirror(lock, text)
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
    redis.call('HSET', lock.key, 'k', lock.kind, 'm', lock.mirror)
  end

  -- Before a renewal: nil as long as the mirror is held with the lock, or is not this holder's at
  -- all; otherwise who holds it, in the words of describe_obstacle(): 0 holders, if it is free.
  function mirrors.loss(lock)
    local m = read_mirror(lock.mirror)
    if m.holder ~= lock.family.name then return nil end
    local state = state_of(m)
    if state == 'ours' and not is_dead(lock.own) then return nil end
    if state ~= 'taken' then return 0, 0, label_of(m) end
    return 1, math.max(redis.call('PTTL', m.key), 0), label_of(m)
  end

  -- A digest that tells one of their locks from another one of the same name, without its secret.
  local function token_of(m)
    if m.kind ~= 'redisson' then return redis.sha1hex(redis.call('GET', m.key)) end
    local fields = redis.call('HKEYS', m.key)
    table.sort(fields)
    return redis.sha1hex(table.concat(fields, ' '))
  end

  -- Takes the mirror from another program, if its lock is still the one that the user was told of,
  -- by this token_of(); otherwise tells of it. Returns the answer of unmirror.lua.
  function mirrors.take_away(lock, text, token)
    if lock.mirror then mirrors.follow(lock) end
    local m, own = wanted_mirror(lock, text), lock.mirror and read_mirror(lock.mirror)
    m.holder = own and own.name == m.name and own.holder or ''
    local state = state_of(m)
    if state == 'misfit' then return { 'MISFIT', now, m.kind, 1 } end
    if state ~= 'taken' then return { token == '' and 'RELEASED' or 'ABSENT', now } end
    if token ~= token_of(m) then
      local left = math.max(redis.call('PTTL', m.key), 0)
      return { 'HELD', now, 0, 1, 1, left, label_of(m), '', token_of(m) }
    end
    redis.call('DEL', m.key)
    notify_library(m)
    return { 'RELEASED', now }
  end

  return mirrors
end
