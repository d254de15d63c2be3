-- What every script of a lock starts with: one hash holds all there is of one lock.
--
--   k            kind and version of the layout, "lock/1"
--   f            last fencing token issued
--   s            how it is held:  MODE LIMIT FAMILIES EARLIEST LONGEST SHOWN   (none: free)
--   b            slots of a semaphore, "1" for one that is taken
--   h:OWNER      a family: OWNER and those that nest in it, one line each:
--                DEADLINE LEASE FENCE OWNER SINCE MODE SLOT WHO
--   q, q:OWNER   the queue, and that of those who nest in OWNER:  FIRST LAST CALLED
--   q:N, q:OWNER:N   a waiter's place:  DEADLINE OWNER SINCE MODE WHO; MODE is in capitals where it waits for
--                another of its keys alone
--   w:OWNER      which place it has
--   t            owners that must not acquire:  OWNER=UNTIL;OWNER=UNTIL;…
--
-- A server that is one of a quorum has a marker as well, one hash for all locks:
--   since        when it was first asked for a lock, as far as it remembers
--
-- MODE is x (exclusive), s (shared) or l (semaphore). An owner is the path of its ancestors' tokens and its
-- own, A.B.C, so whoever nests in A starts with "A.". Times are the server's, in ms, read once. Who is dead is decided by
-- deadlines; the key's own time to live only clears away what nobody has touched for a week.
--
-- No call but inspect and a purge grows with the number of holders or waiters. Waiters are looked at one by one
-- from the first. Of the holders, EARLIEST tells a time before which none of them can be dead: only who is in
-- somebody's way after it looks at them all, and finds a later EARLIEST, or some of them dead.
--
-- Memory: Redis checks maxmemory at the first write of a script alone, and PEXPIRE and HDEL pass it. So
-- keep() comes first wherever someone who is in already must be served on a full server.
local KIND = 'lock/1'
local WEEK = 604800000
local WALK = 10000 -- tickets

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Exact up to 2^53, where .. and tostring() round to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- Nothing but digits, and exact: tonumber() takes inf, nan, 0x10 and 1e3 as well, with which a loop over
-- tickets would never end.
local function number(text)
  local n = text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text)
  return n and n < 9007199254740992 and n or nil
end

-- owner's ancestors, outermost first, and itself.
local function lineage(owner)
  local path = {}
  for dot in string.gmatch(owner, '()%.') do path[#path + 1] = string.sub(owner, 1, dot - 1) end
  path[#path + 1] = owner
  return path
end

local function nests_in(owner, ancestor)
  return string.sub(owner, 1, #ancestor + 1) == ancestor .. '.'
end

-- Records -----------------------------------------------------------------------------------------

local function read_entry(line)
  local deadline, lease, fence, owner, since, mode, slot, who =
    string.match(line, '^(%d+) (%d+) (%d+) (%S+) (%d+) ([xsl]) (%d+) (.*)$')
  local e = { deadline = number(deadline), lease = number(lease), fence = number(fence), owner = owner,
              since = number(since), mode = mode, slot = number(slot), who = who }
  return e.deadline and e.lease and e.fence and e.since and e.slot and e or nil
end

local function write_entry(e)
  return whole(e.deadline) .. ' ' .. whole(e.lease) .. ' ' .. whole(e.fence) .. ' ' .. e.owner .. ' '
    .. whole(e.since) .. ' ' .. e.mode .. ' ' .. whole(e.slot) .. ' ' .. e.who
end

local function is_dead(e)
  return e.deadline <= now
end

-- nil where a line cannot be read, or there is none.
local function read_family(name, text)
  local family = { name = name, entries = {} }
  for line in string.gmatch(text, '[^\n]+') do
    local e = read_entry(line)
    if not e then return nil end
    table.insert(family.entries, e)
  end
  return #family.entries > 0 and family or nil
end

local function read_waiter(text)
  local deadline, owner, since, mode, who = string.match(text, '^(%d+) (%S+) (%d+) ([xslXSL]) (.*)$')
  deadline = number(deadline)
  if not deadline then return nil end
  return { deadline = deadline, owner = owner, since = since, mode = string.lower(mode),
           elsewhere = mode < 'a', who = who }
end

local function write_waiter(w)
  return whole(w.deadline) .. ' ' .. w.owner .. ' ' .. w.since .. ' '
    .. (w.elsewhere and string.upper(w.mode) or w.mode) .. ' ' .. w.who
end

local function read_held(text)
  local mode, limit, count, earliest, longest, shown =
    string.match(text, '^([xsl]) (%d+) (%d+) (%d+) (%d+) (%S+)$')
  local held = { mode = mode, limit = number(limit), count = number(count), earliest = number(earliest),
                 longest = number(longest), shown = shown }
  return held.limit and held.count and held.earliest and held.longest and held or nil
end

local function read_queue(base, text)
  if not text then return { base = base, first = 1, last = 0, called = 0 } end
  local first, last, called = string.match(text, '^(%d+) (%d+) (%d+)$')
  local queue = { base = base, first = number(first), last = number(last), called = number(called) }
  local sound = queue.first and queue.last and queue.called and queue.first >= 1
    and queue.last >= queue.first - 1
  return sound and queue or nil
end

-- The lock ----------------------------------------------------------------------------------------

-- The lock as "owner", who may be nobody, finds it; or nil and the refusal to return.
local function load_lock(key, owner)
  local path = owner and lineage(owner) or {}
  local fields = { 'k', 'f', 's', 'b', 't', 'q', owner and 'w:' .. owner or 'w' }
  local fixed = #fields
  for i, name in ipairs(path) do fields[fixed + i] = 'h:' .. name end
  local v = redis.pcall('HMGET', key, unpack(fields))
  if v.err then
    if string.find(v.err, 'WRONGTYPE', 1, true) then return nil, { 'MISFIT', now, 'damaged' } end
    return nil, v
  end
  if v[1] and v[1] ~= KIND then return nil, { 'MISFIT', now, v[1] } end
  local lock = {
    key = key, owner = owner, path = path, fence = number(v[2] or '0'), held = v[3] and read_held(v[3]),
    slots = v[4] or '', barred = v[5] or '', queue = read_queue('q', v[6]), place = v[7] or nil,
    families = {},
  }
  local sound = (v[1] or redis.call('EXISTS', key) == 0)
    and lock.fence and (lock.held or not v[3]) and lock.queue
    and (not v[5] or string.gsub(lock.barred, '[^=;]+=%d+;', '') == '')
  for i, name in ipairs(path) do
    local text = v[fixed + i]
    lock.families[name] = text and read_family(name, text) or nil
    sound = sound and (not text or lock.families[name] and lock.held)
  end
  if not sound then return nil, { 'MISFIT', now, 'damaged' } end
  return lock
end

-- owner's entry and the family that it is in.
local function find_entry(lock, owner)
  for _, name in ipairs(lineage(owner)) do
    local family = lock.families[name]
    for _, e in ipairs(family and family.entries or {}) do
      if e.owner == owner then return e, family end
    end
  end
end

-- The nearest ancestor of the lock's owner that holds it, and its family.
local function find_parent(lock)
  for i = #lock.path - 1, 1, -1 do
    local e, family = find_entry(lock, lock.path[i])
    if e and not is_dead(e) then return e, family end
  end
end

-- Keeps the key for a week after the longest lease.
local function keep(lock, lease)
  local longest = lock.held and lock.held.longest or 0
  redis.call('PEXPIRE', lock.key, WEEK + math.max(lease, longest))
end

-- Queues ------------------------------------------------------------------------------------------

-- Pub/sub only makes it quick: a lost message costs one heartbeat. A server that forbids it, too.
local function poke(lock, waiter)
  redis.pcall('PUBLISH', lock.key .. ':' .. waiter.owner, '1')
end

local function place_of(queue, ticket)
  return queue.base .. ':' .. whole(ticket)
end

local function write_queue(lock, queue)
  if queue.base ~= 'q' and queue.first > queue.last then
    redis.call('HDEL', lock.key, queue.base)
  else
    redis.call('HSET', lock.key, queue.base,
      whole(queue.first) .. ' ' .. whole(queue.last) .. ' ' .. whole(queue.called))
  end
end

-- The queue of those who nest in "parent", or of all others. One that cannot be read is begun anew.
local function queue_below(lock, parent)
  if not parent then return lock.queue end
  local base = 'q:' .. parent.owner
  return read_queue(base, redis.call('HGET', lock.key, base)) or read_queue(base)
end

-- The first living waiter; whoever calls (queue.mine is its ticket) is alive. The dead ones before it, and the
-- holes, go for good. One call looks at so many tickets only, the next goes on: then nobody is first yet.
-- most: the longest that a place is kept, where that is known; a clock that was set back must not keep a dead
-- waiter longer.
local function first_waiter(lock, queue, most)
  local from = queue.first
  local waiter
  while queue.first <= queue.last and not waiter do
    local place = place_of(queue, queue.first)
    local text = redis.call('HGET', lock.key, place)
    local found = text and read_waiter(text)
    if found and most and found.deadline > now + most then
      found.deadline = now + most
      redis.call('HSET', lock.key, place, write_waiter(found))
    end
    if queue.first == queue.mine then
      waiter = { owner = lock.owner }
    elseif found and found.deadline > now then
      waiter = found
    elseif queue.first - from == WALK then
      waiter = { owner = '' }
    else
      if text then redis.call('HDEL', lock.key, place) end
      if found then redis.call('HDEL', lock.key, 'w:' .. found.owner) end
      queue.first = queue.first + 1
    end
  end
  if queue.first ~= from then write_queue(lock, queue) end
  return waiter
end

local function leave_queue(lock)
  if lock.place then redis.call('HDEL', lock.key, lock.place, 'w:' .. lock.owner) end
  lock.place, lock.queue.mine = nil, nil
end

-- Whoever waits in it hears of it and queues again, where it belongs.
local function empty_queue(lock, queue)
  for ticket = queue.first, queue.last do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    if text then redis.call('HDEL', lock.key, place_of(queue, ticket)) end
    if waiter then
      redis.call('HDEL', lock.key, 'w:' .. waiter.owner)
      poke(lock, waiter)
    end
  end
  queue.first = queue.last + 1
  write_queue(lock, queue)
end

-- Holders -----------------------------------------------------------------------------------------

local function write_held(lock)
  local h = lock.held
  if h then
    redis.call('HSET', lock.key, 's', h.mode .. ' ' .. whole(h.limit) .. ' ' .. whole(h.count) .. ' '
      .. whole(h.earliest) .. ' ' .. whole(h.longest) .. ' ' .. h.shown)
  else
    redis.call('HDEL', lock.key, 's', 'b')
    lock.slots = ''
  end
end

local function write_family(lock, family)
  if #family.entries == 0 then
    redis.call('HDEL', lock.key, 'h:' .. family.name)
    lock.families[family.name] = nil
    return
  end
  local lines = {}
  for i, e in ipairs(family.entries) do lines[i] = write_entry(e) end
  redis.call('HSET', lock.key, 'h:' .. family.name, table.concat(lines, '\n'))
  lock.families[family.name] = family
end

local function mode_of(family)
  for _, e in ipairs(family.entries) do
    if e.mode ~= 's' then return e.mode end
  end
  return 's'
end

local function mark_slot(lock, slot, mark)
  if slot > #lock.slots then lock.slots = lock.slots .. string.rep('0', slot - #lock.slots) end
  lock.slots = string.sub(lock.slots, 1, slot - 1) .. mark .. string.sub(lock.slots, slot + 1)
end

local function take_slot(lock)
  local slot = string.find(lock.slots, '0', 1, true) or #lock.slots + 1
  mark_slot(lock, slot, '1')
  redis.call('HSET', lock.key, 'b', lock.slots)
  return slot
end

-- What waits for a holder that is gone waits for those that it nested in.
local function disband(lock, owner)
  local base = 'q:' .. owner
  local text = redis.call('HGET', lock.key, base)
  local queue = text and read_queue(base, text)
  if queue then empty_queue(lock, queue) end
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
      if e.slot > 0 then mark_slot(lock, e.slot, '1') end
    end
    if #family.entries > 0 then held.count = held.count + 1 end
  end
  lock.held = held.count > 0 and held or nil
  write_held(lock)
  if lock.held and lock.slots ~= '' then redis.call('HSET', lock.key, 'b', lock.slots) end
end

local function has_room(held, mode)
  return not held or mode == 's' and held.mode == 's'
    or mode == 'l' and held.mode == 'l' and held.count < held.limit
end

-- Holders without room for the mode that may be dead are looked at.
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
  -- A dead one's slot is the next one's.
  if mode == 'l' or not has_room(lock.held, mode) then refresh(lock) end
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

-- Calls who can go now; not who waits for another of its keys, and is called there. Of several who can go together it calls two, and each of them calls the next when it has
-- come: so all come soon, and no call takes long. CALLED is the last who was.
-- patience: the first is left alone if it has called within a second, and so knows.
local function wake(lock, parent, family, patience)
  local queue = queue_below(lock, parent)
  local head = first_waiter(lock, queue)
  if not head or head.owner == '' or head.owner == lock.owner then return end
  if patience and head.deadline > now + patience - 1000 then return end
  if obstacle(lock, head.mode, parent, family) then return end
  if head.mode == 'x' then
    if not head.elsewhere then poke(lock, head) end
    return
  end
  local room = 2
  if head.mode == 'l' and not parent and lock.held then
    local coming = math.max(queue.called - queue.first + 1, 0)
    room = math.min(room, lock.held.limit - lock.held.count - coming)
  elseif head.mode == 'l' and (parent or not lock.held) then
    room = queue.called < queue.first and 1 or 0
  end
  local called = queue.called
  local ticket = math.max(called + 1, queue.first)
  local last = math.min(queue.last, ticket + 100)
  while room > 0 and ticket <= last do
    local text = redis.call('HGET', lock.key, place_of(queue, ticket))
    local waiter = text and read_waiter(text)
    if waiter and waiter.deadline > now then
      if waiter.mode ~= head.mode then break end
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
  write_family(lock, family)
  local held = lock.held
  if #family.entries == 0 then
    held.count = held.count - 1
    if held.shown == family.name then held.shown = '-' end
    if e.slot > 0 then mark_slot(lock, e.slot, '0') end
    if held.count <= 0 then lock.held = nil end
    write_held(lock)
    if lock.held and e.slot > 0 then redis.call('HSET', lock.key, 'b', lock.slots) end
  elseif held.mode ~= 'l' and mode_of(family) ~= mode then
    held.mode = mode_of(family)
    write_held(lock)
  end
  return mode
end

-- Quorums -----------------------------------------------------------------------------------------

-- For how long this server has been one of a quorum, in ms, at least 1: one that lost its data is new to it.
-- To be called last, since it begins with PEXPIRE.
local function memory(marker)
  redis.call('PEXPIRE', marker, WEEK)
  local since = number(redis.call('HGET', marker, 'since'))
  if not since or since > now then
    since = now
    redis.call('HSET', marker, 'since', whole(now))
    redis.call('PEXPIRE', marker, WEEK)
  end
  return math.max(now - since, 1)
end

-- The fence that the holder has settled on for all servers of its quorum; nil: none.
local function settle(lock, e, fence)
  if not fence then return end
  e.fence = fence
  if fence > lock.fence then
    lock.fence = fence
    redis.call('HSET', lock.key, 'f', whole(fence))
  end
end
