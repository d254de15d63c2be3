-- The operations of acquire.lua on the mirror that a request asks for. A part of open_mirrors() of
-- mirror.lua, which returns the table "mirrors". text: the mirror that is asked for, as KIND:NAME.

-- Why the mirror that is asked for can never be held: 'mirror' if the owner's family holds the lock
-- with another one, or the kind of the mirror if its key has something that is not a lock of that
-- kind; nil if it can be held.
function mirrors.misfit(lock, text)
  local wanted, present = wanted_mirror(lock, text), lock.mirror and read_mirror(lock.mirror)
  local has_another = present and present.holder == wanted.holder
    and (present.kind ~= wanted.kind or present.name ~= wanted.name)
  if has_another then return 'mirror' end
  return state_of(wanted) == 'misfit' and wanted.kind or nil
end

-- Whether the family of the lock's owner holds the mirror that is asked for.
function mirrors.is_held(lock, text)
  return state_of(wanted_mirror(lock, text)) == 'ours'
end

-- The obstacle that keeps the lock's owner out though the lock does not: another program, if that
-- holds the mirror. The table is that of obstacle() in holders.lua; nil: no other program does. A
-- mirror that a holder of ours has left behind is removed first.
function mirrors.obstacle(lock, text)
  if lock.mirror then mirrors.follow(lock) end
  local mirror = wanted_mirror(lock, text)
  if state_of(mirror) ~= 'taken' then return nil end
  return { count = 1, till = now + math.max(redis.call('PTTL', mirror.key), 0),
           shown = label_of(mirror) }
end

-- Takes the mirror for the family of the lock's owner, for the lease (ms), and notes it in the
-- lock. If that family has it already, it lasts for the lease at least, as others of the family may
-- need it for longer. who: the WHO of the caller; its host is told by a row of shedlock.
function mirrors.take(lock, text, lease, who)
  local mirror = wanted_mirror(lock, text)
  if state_of(mirror) == 'ours' then
    lease = math.max(lease, redis.call('PTTL', mirror.key))
  elseif mirror.kind == 'redisson' then
    redis.call('HSET', mirror.key, mirror.holder .. ':0', '1')
  else
    local host = mirror.kind == 'shedlock' and string.match(who, '^[^- ]%S*')
    local prefix = host and string.sub(host, 1, 100) .. ' ' or ''
    redis.call('SET', mirror.key, prefix .. mark_of(mirror))
  end
  redis.call('PEXPIRE', mirror.key, lease)
  lock.mirror = mirror.kind .. ' ' .. mirror.holder .. ' ' .. mirror.name
  redis.call('HSET', lock.key, 'k', lock.kind, 'm', lock.mirror)
end
