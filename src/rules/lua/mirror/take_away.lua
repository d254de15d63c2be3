-- The operation of unmirror.lua. A part of open_mirrors() of mirror.lua, which returns the table
-- "mirrors".

-- A digest by which a user can tell the lock that another program has now from a later one of the
-- same name. It is made of what the key has, which may be a secret of that program.
local function token_of(mirror)
  if mirror.kind ~= 'redisson' then return redis.sha1hex(redis.call('GET', mirror.key)) end
  local fields = redis.call('HKEYS', mirror.key)
  table.sort(fields)
  return redis.sha1hex(table.concat(fields, ' '))
end

-- Takes the mirror (text: KIND:NAME) away from another program, if its lock there is still the one
-- that the user was told of, which "token" says; otherwise tells of it. Returns the answer of
-- unmirror.lua, which lists them. A holder of ours keeps what it has.
function mirrors.take_away(lock, text, token)
  if lock.mirror then mirrors.follow(lock) end
  local mirror, ours = wanted_mirror(lock, text), lock.mirror and read_mirror(lock.mirror)
  mirror.holder = ours and ours.name == mirror.name and ours.holder or ''
  local state = state_of(mirror)
  if state == 'misfit' then return { 'MISFIT', now, mirror.kind, 1 } end
  if state ~= 'taken' then return { token == '' and 'RELEASED' or 'ABSENT', now } end
  if token ~= token_of(mirror) then
    local left = math.max(redis.call('PTTL', mirror.key), 0)
    return { 'HELD', now, 0, 1, 1, left, label_of(mirror), '', token_of(mirror) }
  end
  redis.call('DEL', mirror.key)
  notify_library(mirror)
  return { 'RELEASED', now }
end
