-- Who holds a lock, whom that keeps out, and who is called when it changes.

local function mode_of(family)
  for _, e in ipairs(family.entries) do
    if e.mode ~= 's' then return e.mode end
  end
  return 's'
end

-- What waits for a holder that is gone waits for those that it nested in.
local function disband(lock, owner)
  local base = 'q:' .. owner
  local text = redis.call('HGET', lock.key, base)
  local queue = text and read_queue(base, text)
  if queue then empty_queue(lock, queue) end
end

-- What is known of owners that must not come back, for so many ms more.
local function note_barred(lock, name, ms)
  local barred = name .. '=' .. whole(now + ms) .. ';'
  for other, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    if tonumber(deadline) > now and other ~= name then barred = barred .. other .. '=' .. deadline .. ';' end
  end
  lock.barred = barred
  redis.call('HSET', lock.key, 't', barred, 'k', KIND)
end

-- Takes those out of the family whom "gone" tells.
local function thin_out(lock, family, gone)
  local left = {}
  for _, e in ipairs(family.entries) do
    if gone(e) then disband(lock, e.owner) else left[#left + 1] = e end
  end
  local changed = #left < #family.entries
  family.entries = left
  return changed
end

-- A clock that was set back must not stretch a dead holder's lease.
local function clamp(family)
  local changed = false
  for _, e in ipairs(family.entries) do
    if e.deadline > now + e.lease then
      e.deadline = now + e.lease
      changed = true
    end
  end
  return changed
end

-- nil if one cannot be read.
local function all_families(lock)
  local shown = lock.held.count == 1 and redis.call('HGET', lock.key, 'h:' .. lock.held.shown)
  local fields = shown and { 'h:' .. lock.held.shown, shown } or redis.call('HGETALL', lock.key)
  local families = {}
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^h:(.+)$')
    local family = name and (lock.families[name] or read_family(name, fields[i + 1]))
    if name and not family then return nil end
    if family then families[#families + 1] = family end
  end
  return families
end

-- Looks at all holders: the dead ones go, the state is told anew. Where one cannot be read nobody goes or comes.
local function prune(lock)
  local families = all_families(lock)
  if not families then
    lock.damaged = true
    return
  end
  local held = { mode = 's', limit = lock.held.limit, count = 0, earliest = math.huge, longest = 0,
                 shown = '-' }
  lock.slots = ''
  for _, family in ipairs(families) do
    local clamped = clamp(family)
    if thin_out(lock, family, is_dead) or clamped then write_family(lock, family) end
    for _, e in ipairs(family.entries) do
      held.earliest = math.min(held.earliest, e.deadline)
      held.longest = math.max(held.longest, e.lease)
      held.shown = family.name
      if e.mode ~= 's' then held.mode = e.mode end
      if e.slot > 0 then mark_slot(lock, e.slot, 1) end
    end
    if #family.entries > 0 then held.count = held.count + 1 end
  end
  lock.held = held.count > 0 and held or nil
  if lock.held then
    redis.call('HSET', lock.key, 's', state_text(held))
  else
    redis.call('HDEL', lock.key, 's', 'b')
    lock.slots = ''
  end
  if lock.held and lock.slots ~= '' then redis.call('HSET', lock.key, 'b', lock.slots) end
end

local function has_room(held, mode)
  return not held or mode == 's' and held.mode == 's'
    or mode == 'l' and held.mode == 'l' and held.count < held.limit
end

-- Holders of whom one may be dead are looked at.
local function refresh(lock)
  local held = lock.held
  if held and (held.earliest <= now or held.earliest > now + held.longest) then prune(lock) end
end

-- What keeps "mode" out below "parent", or from outside: how many, no earlier than when one of them may be
-- gone, and one to show, in a line; nil if nothing does.
local function obstacle(lock, mode, parent, family)
  local found = { count = 0, till = math.huge, shown = '' }
  if parent then
    for _, e in ipairs(family.entries) do
      local beside = nests_in(e.owner, parent.owner) and not is_dead(e)
      if beside and not (mode == 's' and e.mode == 's') then
        found.count, found.till = found.count + 1, math.min(found.till, e.deadline)
        found.shown = write_entry(e)
      end
    end
    return found.count > 0 and found or nil
  end
  -- Also where there is room: a dead one's slot is the next one's, and dead readers would gather.
  refresh(lock)
  if has_room(lock.held, mode) then return nil end
  local text = redis.call('HGET', lock.key, 'h:' .. lock.held.shown) or ''
  return { count = lock.held.count, till = lock.held.earliest, shown = string.match(text, '^[^\n]*') }
end

-- Who has the lock, in the words of a refusal.
local function describe(found)
  if not found then return 0, 0, '' end
  return found.count, math.max(found.till - now, 0), found.shown
end

-- Who holds it now, to tell one who does not.
local function present(lock)
  if lock.held then refresh(lock) end
  return describe(lock.held and obstacle(lock, 'x'))
end

-- Behind a first one that waits for another of its keys: calls the first of those who nest, and may pass it.
local function wake_passing(lock, queue, parent, family)
  for ticket = queue.first + 1, math.min(queue.last, queue.first + 100) do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    if waiter and waiter.deadline > now and not waiter.elsewhere and waiter.owner ~= lock.owner
      and string.find(waiter.owner, '.', 1, true) then
      if not obstacle(lock, waiter.mode, parent, family) then poke(lock, waiter) end
      return
    end
  end
end

-- Calls who can go now; not who waits for another of its keys, and is called there. Of several who can go
-- together it calls two, and each of them calls the next when it has come: so all come soon, and no call takes
-- long. CALLED is the last who was.
-- patience: the first is left alone if it has called within a second, and so knows.
local function wake(lock, parent, family, patience)
  local queue = queue_below(lock, parent)
  local head = first_waiter(lock, queue)
  if not head or head.owner == '' or head.owner == lock.owner then return end
  if head.elsewhere then wake_passing(lock, queue, parent, family) end
  if patience and head.deadline > now + patience - 1000 then return end
  if obstacle(lock, head.mode, parent, family) then return end
  if head.mode == 'x' then
    if not head.elsewhere then poke(lock, head) end
    return
  end
  local room = 2
  if head.mode == 'l' then
    -- Where it is free now, the limit as it was; below a parent there is one slot.
    local limit = not parent and (lock.held and lock.held.limit or lock.limit) or 1
    local taken = not parent and lock.held and lock.held.count or 0
    local coming = math.max(queue.called - queue.first + 1, 0)
    room = math.min(room, math.max(limit, 1) - taken - coming)
  end
  local called = queue.called
  local ticket = math.max(called + 1, queue.first)
  local last = math.min(queue.last, ticket + 100)
  while room > 0 and ticket <= last do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    if waiter and waiter.deadline > now then
      -- Who calls now does not listen yet: whoever comes before it calls it.
      if waiter.mode ~= head.mode or waiter.owner == lock.owner then break end
      queue.called = ticket
      if not waiter.elsewhere then
        poke(lock, waiter)
        room = room - 1
      end
    end
    ticket = ticket + 1
  end
  if queue.called ~= called then write_queue(lock, queue) end
end

-- After "owner", who was in "family", has left: whoever is next, beside it or outside.
local function wake_after(lock, owner, family, mode_before)
  local parent
  for _, e in ipairs(family and family.entries or {}) do
    local nearer = nests_in(owner, e.owner) and (not parent or #e.owner > #parent.owner)
    if nearer and not is_dead(e) then parent = e end
  end
  if parent then wake(lock, parent, family) end
  if not parent or mode_before and mode_before ~= mode_of(family) then wake(lock) end
end

-- Takes a holder out, and dead ones of its family. What is left in it may be less exclusive.
local function remove(lock, e, family)
  local mode = mode_of(family)
  thin_out(lock, family, function(other) return other == e or is_dead(other) end)
  local held = lock.held
  if #family.entries == 0 then
    held.count = held.count - 1
    if held.shown == family.name then held.shown = '-' end
    if held.count <= 0 then lock.held = nil end
  elseif held.mode ~= 'l' then
    held.mode = mode_of(family)
  end
  write_holders(lock, family)
  if lock.held and e.slot > 0 and #family.entries == 0 then
    mark_slot(lock, e.slot, 0)
    redis.call('HSET', lock.key, 'b', lock.slots)
  end
  return mode
end
