-- The decision of acquire.lua about each lock.
--- @include "turns"
--- @include "groups"
--- @include "grant"

-- Why the request does not fit the lock; nil if it does.
local function misfit(lock)
  local parent, held, wanted, mode = lock.parent, lock.held, limit_of(lock), ask.mode
  if parent and ask.no_nesting then return 'nested' end
  if parent and parent.mode == 's' and mode == 'x' then return 'upgrade' end
  if mode == 'l' and wanted == 0 and not lock.stored then return 'no limit' end
  if mode ~= 'l' and lock.stored and not parent then return 'stored ' .. whole(lock.stored) end
  local fits = not held
    or (held.mode == 'l') == (mode == 'l') and (mode ~= 'l' or held.limit == wanted)
  if fits then return nil end
  if not parent then refresh(lock) end
  if not lock.held then return nil end
  return lock.held.mode == 'l' and 'limit ' .. whole(lock.held.limit) or 'lock'
end

-- Finds its places. Returns the refusal of a request that does not fit, or that a recent success
-- makes needless. ask.dropped: it had places, and has lost some; ask.left: and could not come back
-- to all, so that it has left them.
local function find_places()
  local missing, placed = false, #had > 0
  for i, lock in ipairs(locks) do
    if lock.place or had[i] then keep(lock, ask.lease) end
    local what = misfit(lock) or mirrors and mirrors.misfit(lock, ask.mirror)
    if what then return { 'MISFIT', now, what, i } end
    find_place(lock)
    missing = missing or not lock.queue.mine
    placed = placed or lock.queue.mine
  end
  local done = ask.done
  if done then
    leave_all()
    return { 'DONE', now, done.which, done.ago, success(locks[done.which], done.began) }
  end
  local refusal = follow_group()
  if refusal then return refusal end
  ask.dropped = ask.place_ttl > 0 and missing and placed
  ask.left = ask.dropped and not come_back_to_all()
end

-- Whether it holds, in an ancestor, a lock that is reserved for it, of several of which it takes
-- some: that is taken last.
local function is_reserved(lock)
  return ask.take and lock.parent and string.find(lock.parent.rest, ' reserved=1', 1, true)
end

-- Looks at all the locks. Returns a refusal, or nil and the decision: "grant", the locks to grant,
-- or nil; "lacks", how many of the needed locks are not free; "which", the number of the lock to
-- tell of, and "found", what keeps the caller out of it. Of the locks that are not free that is the
-- first, rather one that others hold than one that is closed.
local function decide()
  local free, reserved, blocked, found = {}, {}, nil, nil
  for i, lock in ipairs(locks) do
    local what = obstacle(lock, ask.mode, lock.parent, lock.family)
      or mirrors and mirrors.obstacle(lock, ask.mirror) or nil
    lock.obstacle, lock.next = what, is_next(lock)
    if not what and lock.next then
      table.insert(is_reserved(lock) and reserved or free, lock)
    elseif not blocked or ask.take and found and found.closed and not (what and what.closed) then
      blocked, found = i, what
    end
  end
  for i, lock in ipairs(locks) do
    if lock.damaged then return { 'MISFIT', now, 'damaged', i } end
  end
  while #free > ask.needed do table.remove(free) end
  while #free < ask.needed and reserved[1] do table.insert(free, table.remove(reserved, 1)) end
  local lacks = ask.needed - #free
  if lacks > 0 then return nil, { lacks = lacks, which = blocked, found = found } end
  if ask.grace > 0 then return nil, { lacks = 0, which = 1 } end
  return nil, { lacks = 0, which = 1, grant = not ask.stand and free or nil, free = true }
end

-- --replace: asks the holders that keep it out to release the lock, as far as they can hear it; of
-- a semaphore, the one that has had its slot for longest. Returns whether all of them hear it.
local function ask_obstacles(lock)
  local host, user, pid = string.match(ask.who, '^(%S+) (%S+) (%S+) ')
  local notes, all = 'why=--replace', true
  if user and user ~= '-' then
    notes = 'by=' .. user .. '@' .. host .. '%20pid%20' .. pid .. ' ' .. notes
  end
  local families = all_families(lock) or {}
  local only = lock.held.mode == 'l' and oldest_of(families)
  for _, family in ipairs(families) do
    for _, e in ipairs(family.entries) do
      if not only or family.name == only then
        if can_be_asked(e) then ask_holder(lock, family, e, notes) else all = all and is_dead(e) end
      end
    end
  end
  return all
end

-- Asks the holders of as many locks as are lacking.
local function replace(lacks)
  for _, lock in ipairs(locks) do
    if lacks > 0 and lock.obstacle and lock.held and not lock.parent and ask_obstacles(lock) then
      lacks = lacks - 1
    end
  end
end
