-- A mirror and its key: how it is called, and who holds it. A part of open_mirrors() of mirror.lua.

-- The prefix of a key that stands for a row of shedlock's table: the host (src/host) knows it by
-- that. No key of ours begins so.
local SHEDLOCK = '\1shedlock:'

-- The table `mirror` (lock.lua): kind (string, redisson or shedlock), holder (the family that holds
-- it with the lock, or would) and name, and the key at which it is.
local function mirror_of(kind, holder, name)
  return { kind = kind, holder = holder, name = name,
           key = kind == 'shedlock' and SHEDLOCK .. name or name }
end

-- The mirror that the text of the field m describes: KIND OWNER NAME.
local function read_mirror(text)
  return mirror_of(string.match(text, '^(%l+) (%S+) (.+)$'))
end

-- The text that the value of the mirror's key has, or ends with, if our holder holds it. It is for
-- the kinds string and shedlock; a row of shedlock names the last token of the owner only.
local function mark_of(mirror)
  if mirror.kind == 'string' then return 'rlock:' .. mirror.holder end
  return 'rlock ' .. string.match(mirror.holder, '[^.]*$')
end

-- Whether the value of the mirror's key says that our holder holds it: it is the mark, or, in a row
-- of shedlock, ends with it, behind the name of a host. Of the kinds string and shedlock.
local function has_mark(mirror)
  local value, mark = redis.call('GET', mirror.key), mark_of(mirror)
  if value == mark then return true end
  return mirror.kind == 'shedlock' and string.sub(value, -#mark - 1) == ' ' .. mark
end

-- The text by which an answer tells of a mirror that another program holds: its name, and with
-- shedlock also the holder. Of the other kinds the holder is not known, or is a secret.
local function label_of(mirror)
  local by = mirror.kind == 'shedlock' and redis.call('GET', mirror.key)
  return 'foreign ' .. mirror.name .. (by and ' (' .. by .. ')' or '')
end

-- The state of the mirror: 'free' if it is not held; 'ours' if mirror.holder holds it; 'taken' if
-- another program does; 'misfit' if the key has something that is not a lock of that kind.
local function state_of(mirror)
  local type = redis.call('TYPE', mirror.key).ok
  if type == 'none' then return 'free' end
  local is_hash = mirror.kind == 'redisson'
  if type ~= (is_hash and 'hash' or 'string') then return 'misfit' end
  local is_ours
  if is_hash then
    is_ours = redis.call('HEXISTS', mirror.key, mirror.holder .. ':0') == 1
  else
    is_ours = has_mark(mirror)
  end
  return is_ours and 'ours' or 'taken'
end

-- Whether the call has declared the mirror's key, among KEYS behind the locks, and so may touch it.
local function is_among_keys(mirror)
  for i = LOCKS + 1, #KEYS do
    if KEYS[i] == mirror.key then return true end
  end
  return false
end

-- The mirror that a request asks for, by the text KIND:NAME, with the holder that it would have:
-- the family of the lock's owner, or the owner itself, if it has no family yet.
local function wanted_mirror(lock, text)
  local kind, name = string.match(text, '^(%l+):(.+)$')
  return mirror_of(kind, lock.family and lock.family.name or lock.owner, name)
end
