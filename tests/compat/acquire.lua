-- include lock.lua
-- include slots.lua
-- include member.lua

-- Takes all the locks, or a place in the queue of each.
-- ARGV: owner, lease, how long a place in the queue is kept without a call (0: do not queue; less: take none, not even
--       the first of them),
--       not_after (server ms; 0: any time), places held so far, 1 to count them, mode, limit, 1 to nest, who;
--       'grace' and the server's marker; or in a quorum 'member', its marker, which process of the server this is, a
--       fence that all may take (0: none), and where the lock is held elsewhere already its fences…
-- {'GRANTED', now, {fence…}, {slot…}}
-- {'QUEUED', now, places, ahead and I, 1 if queued anew, which key, holders, ms, holder}
-- {'HELD', now, how many wait, which key, holders, ms until the first may be dead, holder}
-- {'GRACE', now, ms until it grants anything, places or '', ahead (and I), 1 if queued anew}: nobody is known to hold it
-- {'STALE', now}   {'BARRED', now}   {'MISFIT', now, what, which key}
-- In a quorum, GRANTED and HELD as as_member() has them.
local owner, who = ARGV[1], ARGV[10]
local lease, patience, not_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local stands = patience < 0
patience = math.abs(patience)
local count, mode, limit, nest = ARGV[6] == '1', ARGV[7], tonumber(ARGV[8]), ARGV[9] == '1'
local marker, run, proposal = ARGV[12], ARGV[13], tonumber(ARGV[14] or 0)

-- A client's clock that is ahead must not take the fences with it.
if proposal > now_us + 1000000 then proposal = 0 end

-- Executed late: whoever sent this has given up and may have released already.
if not_after > 0 and now > not_after then return { 'STALE', now } end
local locks = {}
for i, key in ipairs(KEYS) do
  local lock, refusal = load_lock(key, owner)
  if not lock then
    if not refusal.err then refusal[4] = i end
    return refusal
  end
  locks[i] = lock
end

local function is_barred(lock)
  local at = string.find(';' .. lock.barred, ';' .. owner .. '=', 1, true)
  local deadline = at and number(string.match(lock.barred, '^(%d+);', at + #owner + 1))
  return at and (not deadline or deadline > now)
end
for _, lock in ipairs(locks) do
  if lock.barred ~= '' and is_barred(lock) then return { 'BARRED', now } end
end

-- For how many ms nothing new is granted.
local grace = 0
if ARGV[11] == 'grace' then
-- include epoch.lua
  grace = grace_left(marker, lease)
end

-- What a new holder gets.
local function next_fence(lock, i)
  local settled = number(ARGV[14 + i])
  lock.fence = settled and math.max(lock.fence, settled) or math.max(lock.fence + 1, now_us, proposal)
  return whole(settled or lock.fence)
end

-- Whether nobody is in the way or waits, and none of those who share it may be dead.
local function is_open(lock)
  local h = lock.held
  if lock.place or lock.queue.first <= lock.queue.last then return false end
  return not h or mode ~= 'x' and h.mode == mode and h.limit == limit and (mode == 's' or h.count < limit)
    and h.earliest > now and h.earliest <= now + h.longest and not next(lock.families)
end

-- Then this is all. The server makes each function anew whenever it runs over one: the many below cost as much as
-- all that there is to do.
local open = ARGV[5] == '' and not stands and grace == 0
for _, lock in ipairs(locks) do open = open and is_open(lock) end
if open then
  local fences, slots, till = {}, {}, string.format('%.0f %.0f ', now + lease, lease)
  -- In this order a newcomer is refused on a full server, and one without the right to expire keys holds nothing.
  for i, lock in ipairs(locks) do
    fences[i] = next_fence(lock, i)
    redis.call('HSET', lock.key, 'k', KIND, 'f', whole(lock.fence))
    keep(lock, lease)
  end
  for i, lock in ipairs(locks) do
    local h, state = lock.held, mode .. ' ' .. limit .. ' 1 ' .. till .. owner
    if h then
      h.count, h.shown = h.count + 1, owner
      h.earliest, h.longest = math.min(h.earliest, now + lease), math.max(h.longest, lease)
      state = state_text(h)
    end
    slots[i] = mode == 'l' and take_slot(lock) or 0
    redis.call('HSET', lock.key, 's', state, 'h:' .. owner,
      till .. fences[i] .. ' ' .. owner .. ' ' .. whole(now) .. ' ' .. mode .. ' ' .. slots[i] .. ' ' .. who)
  end
  return as_member(marker, run, { 'GRANTED', now, fences, slots }, locks)
end

-- include queue.lua
-- include holders.lua

-- Places ------------------------------------------------------------------------------------------

local had = {}
for place in string.gmatch(ARGV[5], '%S+') do had[#had + 1] = place end

local function ticket_of(lock, place)
  local base = lock.queue.base .. ':'
  return place and string.sub(place, 1, #base) == base and number(string.sub(place, #base + 1)) or nil
end

-- Finds the queue that it belongs into; a place in another one, or in one that was passed over, is none.
local function find_place(lock)
  lock.queue = queue_below(lock, lock.parent)
  local ticket = ticket_of(lock, lock.place)
  if ticket and ticket >= lock.queue.first and ticket <= lock.queue.last then
    lock.queue.mine = ticket
  elseif lock.place then
    leave_queue(lock)
  end
end

-- Tickets are issued once. A waiter that was dropped while it could not call (stopped, cut off, the server
-- stopped) comes back to its own, so that an outage does not turn the order around.
local function come_back(lock, place)
  local queue, ticket = lock.queue, ticket_of(lock, place)
  if queue.mine then return true end
  if not ticket or ticket < 1 or ticket > queue.last then return false end
  if redis.call('HEXISTS', lock.key, place) == 1 then return false end
  queue.mine = ticket
  queue.first = math.min(queue.first, ticket)
  queue.called = math.min(queue.called, ticket - 1)
  write_queue(lock, queue)
  lock.place = place
  redis.call('HSET', lock.key, 'k', KIND, 'w:' .. owner, place)
  return true
end

-- In all queues or in none: who is before whom in one must be so in all others.
local function come_back_to_all()
  for i, lock in ipairs(locks) do
    if not come_back(lock, had[i]) then
      for _, each in ipairs(locks) do
        leave_queue(each)
      end
      return false
    end
  end
  return true
end

local function join_queue(lock)
  local queue = lock.queue
  queue.last = queue.last + 1
  queue.mine = queue.last
  lock.place = place_of(queue, queue.mine)
  redis.call('HSET', lock.key, 'k', KIND, 'w:' .. owner, lock.place)
end

-- Keeps the place for another while, without a change of what is known of the waiter but whether it waits for
-- other keys alone. Who was called and cannot go is to be called again.
local function sign_on(lock)
  local queue = lock.queue
  local text = redis.call('HGET', lock.key, lock.place)
  local waiter = text and read_waiter(text) or { owner = owner, since = whole(now), mode = mode, who = who }
  waiter.deadline = now + patience
  local elsewhere = lock.next and not lock.obstacle and grace == 0
  if elsewhere and not waiter.elsewhere and queue.first == queue.mine then
    wake_passing(lock, queue, lock.parent, lock.family)
  end
  waiter.elsewhere = elsewhere
  redis.call('HSET', lock.key, lock.place, write_waiter(waiter))
  queue.called = math.min(queue.called, queue.mine - 1)
  write_queue(lock, queue)
  keep(lock, 0)
end

-- How many tickets from the first to mine are in use. Holes are left out on request alone: it takes time.
local function ahead(lock)
  local queue = lock.queue
  if not count or queue.mine - queue.first > WALK then return queue.mine - queue.first + 1 end
  local used = 1
  for from = queue.first, queue.mine - 1, 1000 do
    local places = {}
    for n = from, math.min(from + 999, queue.mine - 1) do places[#places + 1] = place_of(queue, n) end
    for _, text in ipairs(redis.call('HMGET', lock.key, unpack(places))) do
      if text then used = used + 1 end
    end
  end
  return used
end

-- Whether it can go before the first: it was called as well. So is a reader by its own call, as who was called
-- may never come.
local function goes_along(queue, first)
  if mode == 'x' or not queue.mine or first.mode ~= mode then return false end
  return queue.mine <= queue.called + (mode == 's' and 1 or 0)
end

-- Whether nobody comes first. Who nests passes a first one that waits for another of its keys, and whoever
-- waits behind that: it may be a key of the nested one's ancestors, and then all would wait for each other.
local function is_next(lock)
  local first = first_waiter(lock, lock.queue, patience > 0 and patience)
  return not first or lock.queue.first == lock.queue.mine or goes_along(lock.queue, first)
    or #lock.path > 1 and first.elsewhere
end

-- Holders -----------------------------------------------------------------------------------------

-- What the mode does not go with; nil if it does.
local function misfit(lock)
  local parent, held = lock.parent, lock.held
  if parent and not nest then return 'nested' end
  if parent and parent.mode == 's' and mode == 'x' then return 'upgrade' end
  local fits = not held or (held.mode == 'l') == (mode == 'l') and (mode ~= 'l' or held.limit == limit)
  if fits then return nil end
  if not parent then refresh(lock) end
  if not lock.held then return nil end
  return lock.held.mode == 'l' and 'limit ' .. whole(lock.held.limit) or 'lock'
end

local function answer_granted()
  local fences, slots = {}, {}
  for i, lock in ipairs(locks) do
    fences[i], slots[i] = lock.own.fence, lock.own.slot
  end
  return as_member(marker, run, { 'GRANTED', now, fences, slots }, locks)
end

-- As above: first the tokens, then time to live, then the holder.
local function issue_fences()
  for i, lock in ipairs(locks) do
    lock.issued = lock.parent and not ARGV[14 + i] and lock.parent.fence or next_fence(lock, i)
    redis.call('HSET', lock.key, 'k', KIND, 'f', whole(lock.fence))
    keep(lock, lease)
  end
end

-- A new family, or one more in this one.
local function hold(lock, family, slot)
  local held = lock.held or { mode = mode, limit = limit, count = 0, earliest = math.huge, longest = 0 }
  local fence = lock.issued
  local own = { deadline = now + lease, lease = lease, fence = fence, owner = owner, since = now, mode = mode,
                slot = slot, rest = string.format('%s %s %.0f %s %.0f ', fence, owner, now, mode, slot) .. who }
  if not family then
    family = { name = owner, entries = {} }
    held.count, held.shown = held.count + 1, owner
  end
  family.entries[#family.entries + 1] = own
  held.earliest = math.min(held.earliest, own.deadline)
  held.longest = math.max(held.longest, lease)
  lock.held, lock.own = held, own
  write_holders(lock, family)
end

local function grant_all()
  issue_fences()
  for _, lock in ipairs(locks) do
    -- In its own family those that nest in it may be left.
    local family = lock.family or lock.families[owner]
    local slot = family and family.entries[1].slot or mode == 'l' and take_slot(lock) or 0
    if family then thin_out(lock, family, is_dead) end
    hold(lock, family, slot)
    leave_queue(lock)
    if mode ~= 'x' then wake(lock, lock.parent, lock.family) end
  end
  return answer_granted()
end

-- The same request again: its answer was lost. An entry past its deadline was passed over by no one.
local function extend_all()
  for i, lock in ipairs(locks) do
    keep(lock, lease)
    if ARGV[14 + i] then settle(lock, lock.own, ARGV[14 + i]) end
    lock.own.deadline, lock.own.lease = now + lease, lease
    lock.held.longest = math.max(lock.held.longest, lease)
    lock.held.earliest = math.min(lock.held.earliest, lock.own.deadline)
    write_holders(lock, lock.family)
    leave_queue(lock)
  end
  return answer_granted()
end

-- -------------------------------------------------------------------------------------------------

local owned = 0
for _, lock in ipairs(locks) do
  lock.own, lock.family = find_entry(lock, owner)
  if lock.own then owned = owned + 1 end
end
if owned == #locks then return extend_all() end
for _, lock in ipairs(locks) do
  -- Some were taken away before the answer to the same request was heard.
  if lock.own then wake_after(lock, owner, lock.family, remove(lock, lock.own, lock.family)) end
  lock.parent, lock.family = find_parent(lock)
end

local missing, placed = false, #had > 0
for i, lock in ipairs(locks) do
  if lock.place or had[i] then keep(lock, lease) end
  local what = misfit(lock)
  if what then return { 'MISFIT', now, what, i } end
  find_place(lock)
  missing = missing or not lock.queue.mine
  placed = placed or lock.queue.mine
end
local dropped = patience > 0 and missing and placed
local left = dropped and not come_back_to_all()

local blocked, found
for i, lock in ipairs(locks) do
  lock.obstacle = obstacle(lock, mode, lock.parent, lock.family)
  lock.next = is_next(lock)
  if not blocked and (lock.obstacle or not lock.next) then blocked, found = i, lock.obstacle end
end
for i, lock in ipairs(locks) do
  if lock.damaged then return { 'MISFIT', now, 'damaged', i } end
end
if not blocked and not stands and grace == 0 then return grant_all() end

blocked = blocked or 1
local lock = locks[blocked]
if patience == 0 then
  local waiting = lock.queue.last - lock.queue.first + 1
  if grace > 0 and not found then return { 'GRACE', now, grace, '', waiting, 0 } end
  return as_member(marker, run, { 'HELD', now, waiting, blocked, describe(found) })
end
local places = {}
for i, each in ipairs(locks) do
  if not each.queue.mine then join_queue(each) end
  sign_on(each)
  places[i] = each.place
  local passed = not each.obstacle and not each.next
  if left or passed then wake(each, each.parent, each.family, not left and patience) end
end
places = table.concat(places, ' ')
if grace > 0 and not found then return { 'GRACE', now, grace, places, ahead(lock), dropped and 1 or 0 } end
return { 'QUEUED', now, places, ahead(lock), dropped and 1 or 0, blocked, describe(found) }
