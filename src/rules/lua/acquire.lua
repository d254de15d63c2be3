-- include database.lua
-- include lock.lua
-- include slots.lua
-- include member.lua

-- Takes all the locks, or as many as asked for, the first ones that are free; or a place in the
-- queue of each.
-- ARGV: owner, lease, how long a place in the queue is kept without a call (0: do not queue; less:
--       take none of the locks, even if all are free),
--       not_after (server ms; 0: any time), places held so far, 1 to count them, mode, limit (0:
--       the one that is stored, which goes before any that is given; of an exclusive lock of one
--       key, the mirror that is to be held besides, as KIND:NAME), 1 to nest, who; behind that the
--       notes latest=GROUP, to send away those that wait for that group, replace=1, to ask those
--       that hold it to give it back, priority=N, bound=MS, how long others may go before who has
--       come earlier, and take=N/M: N of the M locks, not in a quorum;
--       where the pauses of GLOBs are (globs.lua; '': nowhere);
--       'offer', a token, and for how many ms from now on it takes the lock if that is handed over
--       with the token (holders.lua); or 'grace' and the server's marker; or in a quorum 'member',
--       its marker, which process of the server this is, a fence that all may take (0: none), and
--       where the lock is held elsewhere already its fences…; behind all that 'unless-done', ms:
--       none of the locks is taken if of each a run began less than so long ago that has succeeded
-- {'GRANTED', now, {fence…}, {slot…}}; where a limit is stored two more: 0, {that limit, or 0…}.
-- The fence is 0 of a lock that is not among those taken; such a one it does not wait for any more.
-- {'QUEUED', now, places, ahead and I, 1 if queued anew, which key, holders, ms,
--  the oldest of them or the first waiter, the limit that is stored if there is one}; where it
-- waits for some of them, the key is one of those that are not free, the ms tell when the first of
-- them may be, and ahead is told of the queue where the fewest are
-- {'SUPERSEDED', now, which key, who has come instead}: it waits for none of them any more
-- {'DONE', now, which key, ms since the run began, the run's record, '' if it is forgotten}: it
-- waits for none of them any more
-- {'HELD', now, how many wait, which key, holders, ms until the first may be dead,
--  the oldest or the first waiter, the limit that is stored if there is one}
-- {'CLOSED', now, ms until it lets anybody in (0: not known), places or '', ahead (and I),
--  1 if queued anew, which key, the pause}: nobody is let in; without a pause its limit is 0
-- {'GRACE', now, ms until it grants anything, places or '', ahead (and I), 1 if queued anew}:
-- nobody is known to hold it
-- {'STALE', now}   {'BARRED', now}   {'MISFIT', now, what, which key}
-- In a quorum, GRANTED and HELD as as_member() has them.
local owner, who = ARGV[1], ARGV[10]
local lease, place_ttl, not_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local stands = place_ttl < 0
place_ttl = math.abs(place_ttl)
local count, mode, limit, nest = ARGV[6] == '1', ARGV[7], tonumber(ARGV[8]), ARGV[9] == '1'
local mirror = not limit and ARGV[8]
limit = limit or 0
local take = tonumber(string.match(who, ' take=(%d+)/') or nil)
-- One of several that are asked about one by one.
local is_part = take and not KEYS[2]
if is_part then take = nil end
local needed = take or #KEYS
local member, marker = ARGV[12] == 'member', ARGV[13]
local run, proposal = member and ARGV[14], tonumber(member and ARGV[15] or 0)

-- A client's clock that is ahead must not take the fences with it.
if proposal > now_us + 1000000 then proposal = 0 end

-- Executed late: whoever sent this has given up and may have released already.
if not_after > 0 and now > not_after then return { 'STALE', now } end
local locks, unused = {}, false
for i = 1, #KEYS do
  local lock, refusal = load_lock(i, owner, 'a')
  if not lock then return refusal end
  locks[i], lock.acquired = lock, number(lock.also) or 0
  unused = unused or lock.fence == 0
end

-- A lock that was acquired before is marked, one that never was need not be. Who has no right to
-- look there takes locks as before.
local globs = unused and ARGV[11] ~= '' and redis.pcall('HMGET', ARGV[11], 'p')[1]
if globs then
-- include globs.lua
  for _, lock in ipairs(locks) do
    if lock.fence == 0 and not lock.paused then
      lock.paused = glob_pause(globs, lock.key)
      lock.unmarked = lock.paused
    end
  end
end

local function is_barred(lock)
  local at = string.find(';' .. lock.barred, ';' .. owner .. '=', 1, true)
  local deadline = at and number(string.match(lock.barred, '^(%d+);', at + #owner + 1))
  return at and (not deadline or deadline > now)
end
for _, lock in ipairs(locks) do
  if lock.barred ~= '' and is_barred(lock) then return { 'BARRED', now } end
end

-- Which lock's latest success is the oldest, and how long ago that began, if it is recent enough. A
-- clock that was set back does not make it last longer.
local done, began_at
local recent = ARGV[#ARGV - 1] == 'unless-done' and tonumber(ARGV[#ARGV])
for i = 1, recent and #locks or 0 do
  local counted = redis.call('HGET', locks[i].key, 'c')
  local began = number(counted and string.match(counted, '^%d+ %d+ (%d+)')) or 0
  local ago = math.max(now - began, 0)
  if began == 0 or ago >= recent or began - now >= recent then
    done = nil
    break
  end
  if not done or ago > done[4] then done, began_at = { 'DONE', now, i, ago }, began end
end

-- For how many ms nothing new is granted.
local grace = 0
if ARGV[12] == 'grace' then
-- include epoch.lua
  grace = grace_left(marker, lease)
end

-- What a new holder gets: in a quorum, what it has settled on. And the last one issued.
local function new_fence(lock, i)
  local settled = number(ARGV[15 + i])
  if not settled then
    local fence = next_fence(lock, proposal)
    return fence, fence
  end
  lock.fence = math.max(lock.fence, settled)
  return whole(settled), whole(lock.fence)
end

-- Whether nobody is in the way or waits, and none of those who share it may be dead.
local function is_open(lock)
  local h = lock.held
  if lock.place or lock.stored or lock.paused then return false end
  if lock.queue.first <= lock.queue.last then return false end
  return not h
    or mode ~= 'x' and h.mode == mode and h.limit == limit and (mode == 's' or h.count < limit)
    and not is_in_doubt(h) and not next(lock.families)
end

-- Who may have been sent away from a queue is not let in unasked.
local latest = string.find(who, ' latest=', 1, true)

-- Then this is all. The server makes each function anew whenever it runs over one: the many below
-- cost as much as all that there is to do.
local open = ARGV[5] == '' and not stands and grace == 0 and not mirror and not done and not take
  and not latest and (mode ~= 'l' or limit > 0)
for _, lock in ipairs(locks) do open = open and is_open(lock) end
if open then
  local fences, slots, till = {}, {}, whole(now + lease) .. ' ' .. ARGV[2] .. ' '
  -- In this order a newcomer is refused on a full server, and one without the right to expire keys
  -- holds nothing.
  for i, lock in ipairs(locks) do
    local fence, last = new_fence(lock, i)
    fences[i] = fence
    redis.call('HSET', lock.key, 'k', KIND, 'f', last, 'a', lock.acquired + 1 .. '')
    keep(lock, lease)
  end
  for i, lock in ipairs(locks) do
    local h, state = lock.held, mode .. ' ' .. limit .. ' 1 ' .. till .. owner
    if h then
      h.count = h.count + 1
      h.earliest, h.longest = math.min(h.earliest, now + lease), math.max(h.longest, lease)
      state = state_text(h)
    end
    slots[i] = mode == 'l' and take_slot(lock) or 0
    redis.call('HSET', lock.key, 's', state, 'h:' .. owner,
      till .. fences[i] .. ' ' .. owner .. ' ' .. now_text .. ' ' .. mode .. ' ' .. slots[i] ..
      ' ' .. who)
  end
  return as_member(marker, run, { 'GRANTED', now, fences, slots }, locks)
end

local function limit_of(lock)
  return mode == 'l' and lock.stored or limit
end

-- With which token and limit the lock may be handed over to this place, and until when it counts.
local function offer(lock)
  if ARGV[12] ~= 'offer' then return nil end
  local lasts = tonumber(ARGV[14])
  return table.concat({ ARGV[13], whole(limit_of(lock)), whole(now + lasts), whole(lasts) }, '/')
end

local COUNTED = 100 -- tickets

-- How many tickets of a line, from one to another, are in use. Holes are left out on request alone,
-- and of a hundred at most: every heartbeat asks for that, and must not grow with the queue.
local function in_use(lock, line, first, last)
  if not count or last - first >= COUNTED then return last - first + 1 end
  local names, used, before = {}, 0, (line.base or 'o:' .. line.priority) .. ':'
  for n = first, last do names[#names + 1] = before .. whole(n) end
  if not names[1] then return 0 end
  for _, text in ipairs(redis.call('HMGET', lock.key, unpack(names))) do
    if text then used = used + 1 end
  end
  return used
end

-- include waiter.lua
local replace = string.find(who, ' replace=1', 1, true)
local only_waits = place_ttl > 0 and grace == 0 and locks[1].place
  and not (mirror or done or take or replace)
if only_waits then
-- include heartbeat.lua
end

-- include memory.lua
-- include queue.lua
-- include holders.lua

local mirrors
if mirror then
-- include mirror.lua
end

-- Places ------------------------------------------------------------------------------------------

local priority = tonumber(string.match(who, ' priority=(-?[1-9])') or 0)
local bound = number(string.match(who, ' bound=(%d+)')) or BOUND

-- Behind the place in the queue, where it was in the list of its priority.
local had, had_listed = {}, {}
for place, n in string.gmatch(ARGV[5], '([^%s/]+)/?(%d*)') do
  had[#had + 1], had_listed[#had + 1] = place, number(n)
end

local function ticket_of(lock, place)
  local base = lock.queue.base .. ':'
  return place and string.sub(place, 1, #base) == base and number(string.sub(place, #base + 1))
    or nil
end

-- Finds the queue that it belongs into; a place in another one, or in one that was passed over, is
-- none.
local function find_place(lock)
  lock.queue = queue_below(lock, lock.parent)
  local ticket = ticket_of(lock, lock.place)
  if ticket and ticket >= lock.queue.first and ticket <= lock.queue.last then
    lock.queue.mine = ticket
    if next(lists_of(lock)) then
      local _, n = list_of(lock, redis.call('HGET', lock.key, lock.place) or '')
      lock.listed = n
    end
  elseif lock.place then
    leave_queue(lock)
  end
end

-- Whether those of priority 0 are in a list, too.
local function all_are_listed(lock)
  for low = LOWEST, 0 do
    if lists_of(lock)[low] then return true end
  end
  return false
end

-- Puts those of priority 0 into a list, in their order. The caller has no record yet.
local function list_all(lock)
  local list = { priority = 0, first = 1, last = 0, called = 0 }
  for ticket = lock.queue.first, lock.queue.last do
    local place = place_of(lock.queue, ticket)
    local text = redis.call('HGET', lock.key, place)
    local waiter = text and read_waiter(text)
    if waiter and not list_of(lock, waiter.who) then
      list.last = list.last + 1
      if ticket <= lock.queue.called then list.called = list.last end
      waiter.who = (waiter.who == '' and NOBODY or waiter.who) .. ' rank=0:' .. whole(list.last)
      redis.call('HSET', lock.key, place, write_waiter(waiter), item_of(list, list.last),
        whole(ticket))
    end
  end
  lock.lists[0] = list
end

-- Its place in the list of its priority: the former one, where it had one that is not taken.
local function join_list(lock, former)
  if lock.queue.base ~= 'q' or priority == 0 and not all_are_listed(lock) then return end
  if priority < 0 and not all_are_listed(lock) then list_all(lock) end
  local list = lists_of(lock)[priority]
    or { priority = priority, first = 1, last = 0, called = 0 }
  if former and former >= 1 and former <= list.last
    and redis.call('HEXISTS', lock.key, item_of(list, former)) == 0 then
    list.first, list.called = math.min(list.first, former), math.min(list.called, former - 1)
    lock.listed = former
  else
    list.last = list.last + 1
    lock.listed = list.last
  end
  lock.rank = ' rank=' .. priority .. ':' .. whole(lock.listed)
  lock.lists[priority] = list
  redis.call('HSET', lock.key, item_of(list, lock.listed), whole(lock.queue.mine))
  write_lists(lock)
end

-- Of those that wait, the smallest bound counts.
local function lower_bound(lock, is_empty)
  lists_of(lock)
  local least = is_empty and bound or math.min(bound, lock.bound)
  if least == lock.bound then return end
  lock.bound = least
  write_lists(lock)
end

-- Tickets are issued once. A waiter that was dropped while it could not call (stopped, cut off, the
-- server stopped) comes back to its own, so that an outage does not turn the order around.
local function come_back(lock, place, listed)
  local queue, ticket = lock.queue, ticket_of(lock, place)
  if queue.mine then return true end
  if not ticket or ticket < 1 or ticket > queue.last then return false end
  if redis.call('HEXISTS', lock.key, place) == 1 then return false end
  queue.mine = ticket
  lower_bound(lock, queue.first > queue.last)
  queue.first = math.min(queue.first, ticket)
  queue.called = math.min(queue.called, ticket - 1)
  write_queue(lock, queue)
  lock.place = place
  redis.call('HSET', lock.key, 'k', KIND, 'w:' .. owner, place)
  join_list(lock, listed)
  return true
end

-- In all queues or in none: who is before whom in one must be so in all others.
local function come_back_to_all()
  for i, lock in ipairs(locks) do
    if not come_back(lock, had[i], had_listed[i]) then
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
  local is_empty = queue.first > queue.last
  lower_bound(lock, is_empty)
  if is_empty and queue.base == 'q' and next(lock.lists) then -- they have nothing but holes
    lock.lists = {}
    write_lists(lock)
  end
  queue.last = queue.last + 1
  queue.mine = queue.last
  lock.place = place_of(queue, queue.mine)
  redis.call('HSET', lock.key, 'k', KIND, 'w:' .. owner, lock.place)
  join_list(lock)
end

-- Who comes last of its group waits alone.
local function join_group(lock)
  local field = group_field(lock, lock.place, who)
  if field then redis.call('HSET', lock.key, field, owner) end
end

-- What is noted of it in the queue. All its keys have one time from which on nobody passes it.
local function noted(lock)
  local text, least = who .. (lock.rank or ''), bound
  if not locks[2] then return text end
  for _, each in ipairs(locks) do
    lists_of(each)
    least = math.min(least, each.bound)
  end
  local before = number(string.match(who, ' waited=(%d+)')) or 0
  return (text == '' and NOBODY or text) .. ' due=' .. whole(now - before + least)
end

-- Keeps the place for another while, without a change of what is known of the waiter but whether it
-- waits for other keys alone, and what it offers this time. Who was called and cannot go is to be
-- called again.
local function sign_on(lock)
  local queue = lock.queue
  local text = redis.call('HGET', lock.key, lock.place)
  if not text then join_group(lock) end
  local waiter = text and read_waiter(text)
    or { owner = owner, since = whole(now), mode = mode, who = noted(lock) }
  waiter.deadline = now + place_ttl
  local elsewhere = lock.next and not lock.obstacle and grace == 0
  if elsewhere and not waiter.elsewhere and lock.is_first then
    wake_passing(lock, queue, lock.parent, lock.family)
  end
  waiter.elsewhere, waiter.offer = elsewhere, offer(lock)
  redis.call('HSET', lock.key, lock.place, write_waiter(waiter))
  queue.called = math.min(queue.called, queue.mine - 1)
  write_queue(lock, queue)
  local list = lock.listed and lists_of(lock)[priority]
  if list and list.called >= lock.listed then
    list.called = lock.listed - 1
    write_lists(lock)
  end
  keep(lock, 0)
end

-- How many of a list have come later than I; all of it, where these are more than a hundred.
local function later_in(lock, list)
  local function is_later(n) return (ticket_at(lock, list, n) or 0) > lock.queue.mine end
  local n = math.max(list.first, list.last - COUNTED + 1)
  if n > list.first and is_later(n) then return list.last - list.first + 1 end
  while n <= list.last and not is_later(n) do n = n + 1 end
  return in_use(lock, list, n, list.last)
end

-- How many come before, and I: those of a higher priority have come later as well.
local function ahead(lock)
  local queue = lock.queue
  if lock.is_first then return 1 end
  local lists, found = queue.base == 'q' and lists_of(lock) or {}, 0
  for above = priority + 1, HIGHEST do
    local list = lists[above]
    if list and lock.listed then found = found + in_use(lock, list, list.first, list.last) end
    if list and not lock.listed then found = found + later_in(lock, list) end
  end
  local list = lock.listed and lists[priority]
  if not list then return found + in_use(lock, queue, queue.first, queue.mine) end
  found = found + in_use(lock, list, list.first, lock.listed)
  -- Who has waited for too long comes first as well.
  return math.max(found, lock.late and 2 or 1)
end

-- Whether it can go before the first: it was called as well. So is a reader by its own call, as who
-- was called may never come.
local function goes_along(lock, first, line)
  local queue = lock.queue
  if mode == 'x' or not queue.mine or first.mode ~= mode then return false end
  if line.priority ~= (lock.listed and priority or nil) then return false end
  local ordered = line == queue and queue.base == 'q' and next(lists_of(lock))
  return (lock.listed or queue.mine) <= line.called + (mode == 's' and not ordered and 1 or 0)
end

-- Whether one that comes now goes before the first.
local function outranks(lock, first, line)
  local queue = lock.queue
  if queue.mine or queue.base ~= 'q' or first.owner == '' then return false end
  return priority > (line.priority or 0) and (line.priority or not is_overdue(lock, first))
end

-- Whether nobody comes first. Who nests passes a first one that waits for another of its keys, and
-- whoever waits behind that: it may be a key of the nested one's ancestors, and then all would wait
-- for each other.
local function is_next(lock)
  lock.callers_bound = bound
  local first, line = first_in_turn(lock, lock.queue, place_ttl > 0 and place_ttl)
  local mine = lock.queue.mine and first and first.ticket == lock.queue.mine
  local next_one = not first or mine or goes_along(lock, first, line)
    or outranks(lock, first, line) or #lock.path > 1 and first.elsewhere
  lock.is_first = mine
  lock.late = first and not mine and line == lock.queue and line.base == 'q'
    and first.who and is_overdue(lock, first)
  lock.first, lock.callers_bound = first, nil
  return next_one
end

-- What keeps it out, in the words of a refusal: those who hold the lock, or else who comes first in
-- its queue.
local function describe_reason(lock, found)
  local first = not lock.is_first and lock.first
  if found or not first or not first.who then return describe(found) end
  return 0, 0, show_waiter(first)
end

-- Holders -----------------------------------------------------------------------------------------

-- What the mode does not go with; nil if it does.
local function misfit(lock)
  local parent, held, wanted = lock.parent, lock.held, limit_of(lock)
  if parent and not nest then return 'nested' end
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

local function answer_granted()
  local fences, slots, limits, any = {}, {}, {}, false
  for i, lock in ipairs(locks) do
    local own = lock.own
    fences[i], slots[i] = own and own.fence or '0', own and own.slot or 0
    limits[i] = own and lock.stored or 0
    any = any or own and lock.stored
  end
  local answer = { 'GRANTED', now, fences, slots }
  if any then answer[5], answer[6] = 0, limits end
  return as_member(marker, run, answer, locks)
end

-- Whoever waits behind it may be next.
local function leave(lock)
  local placed = lock.place
  leave_queue(lock)
  if placed then wake(lock, lock.parent, lock.family) end
end

-- As above: first the tokens, then time to live, then the holder.
local function issue_fences(taken)
  for i, lock in ipairs(taken) do
    lock.issued = lock.parent and not ARGV[15 + i] and lock.parent.fence or new_fence(lock, i)
    redis.call('HSET', lock.key, 'k', KIND, 'f', whole(lock.fence), 'a', count_acquired(lock))
    keep(lock, lease)
  end
end

local function grant(taken)
  if mirror then mirrors.take(locks[1], mirror, lease, who) end
  issue_fences(taken)
  for _, lock in ipairs(taken) do
    -- In its own family those that nest in it may be left.
    local family = lock.family or lock.families[owner]
    local slot = family and family.entries[1].slot or mode == 'l' and take_slot(lock) or 0
    if family then thin_out(lock, family, is_dead) end
    lock.own = { deadline = now + lease, lease = lease, fence = lock.issued, owner = owner,
                 since = now, mode = mode, slot = slot, who = who }
    hold(lock, family, lock.own, limit_of(lock))
    leave_queue(lock)
    if mode ~= 'x' then wake(lock, lock.parent, lock.family) end
  end
  for _, lock in ipairs(locks) do
    if not lock.own then leave(lock) end
  end
  return answer_granted()
end

-- The same request again: its answer was lost, or the message that handed it the lock, so that it
-- has not called the next yet. An entry past its deadline was passed over by no one.
local function extend(taken)
  if mirror then mirrors.take(locks[1], mirror, lease, who) end
  for i, lock in ipairs(taken) do
    keep(lock, lease)
    if ARGV[15 + i] then settle(lock, lock.own, ARGV[15 + i]) end
    lock.own.deadline, lock.own.lease = now + lease, lease
    lock.held.longest = math.max(lock.held.longest, lease)
    lock.held.earliest = math.min(lock.held.earliest, lock.own.deadline)
    write_holders(lock, lock.family)
    leave_queue(lock)
    if mode ~= 'x' and not lock.path[2] then wake(lock) end
  end
  return answer_granted()
end

-- -------------------------------------------------------------------------------------------------

-- What it was asked to give back is not to be had for longer by asking for it again.
local owned, asked = {}, false
for _, lock in ipairs(locks) do
  lock.own, lock.family = find_entry(lock, owner)
  lock.who = who
  if lock.own then
    owned[#owned + 1] = lock
    asked = asked or string.find(lock.own.rest, ' asked=', 1, true)
  end
end
if #owned == needed and not asked and (not mirror or mirrors.is_held(locks[1], mirror)) then
  return extend(owned)
end
for _, lock in ipairs(locks) do
  -- Some were taken away, or asked for, before the answer to the same request was heard.
  if lock.own then
    lock.own.ended = 'unused=1'
    wake_after(lock, owner, lock.family, remove(lock, lock.own, lock.family))
    lock.own = nil
  end
  lock.parent, lock.family = find_parent(lock)
end

local missing, placed = false, #had > 0
for i, lock in ipairs(locks) do
  if lock.place or had[i] then keep(lock, lease) end
  local what = misfit(lock) or mirror and mirrors.misfit(lock, mirror)
  if what then return { 'MISFIT', now, what, i } end
  find_place(lock)
  missing = missing or not lock.queue.mine
  placed = placed or lock.queue.mine
end

local function leave_all()
  for _, lock in ipairs(locks) do leave(lock) end
end

if done then
  leave_all()
  done[5] = success(locks[done[3]], began_at)
  return done
end
if latest then
-- include latest.lua
  local gone = find_superseded()
  if gone then return gone end
  if place_ttl > 0 then supersede_all() end
end
local dropped = place_ttl > 0 and missing and placed
local left = dropped and not come_back_to_all()

-- Of those that are not free the first is told of, rather one that others hold than one where
-- nobody is let in.
local blocked, found
local free, reserved = {}, {} -- of several, what the user has reserved comes last
for i, lock in ipairs(locks) do
  local what = obstacle(lock, mode, lock.parent, lock.family)
    or mirror and mirrors.obstacle(lock, mirror) or nil
  lock.obstacle, lock.next = what, is_next(lock)
  if not what and lock.next then
    local own = take and lock.parent and string.find(lock.parent.rest, ' reserved=1', 1, true)
    table.insert(own and reserved or free, lock)
  elseif not blocked or take and found and found.closed and not (what and what.closed) then
    blocked, found = i, what
  end
end
while #free > needed do table.remove(free) end
while #free < needed and reserved[1] do table.insert(free, table.remove(reserved, 1)) end
for i, lock in ipairs(locks) do
  if lock.damaged then return { 'MISFIT', now, 'damaged', i } end
end
local could_be_granted = #free == needed and grace == 0
if #free == needed then
  if not stands and grace == 0 then return grant(free) end
  blocked, found = nil, nil
end

if replace then
-- include replace.lua
end

blocked = blocked or 1
local lock = locks[blocked]

local function describe_closed(lock, places, waiting, anew)
  local pause = lock.paused
  return { 'CLOSED', now, pause and pause.till - now or 0, places, waiting, anew, blocked,
           pause and pause.text or '' }
end

if place_ttl == 0 then
  local waiting = lock.queue.last - lock.queue.first + 1
  if grace > 0 and not found then return { 'GRACE', now, grace, '', waiting, 0 } end
  if not run and not is_part then count_refusal(lock) end
  if found and found.closed then return describe_closed(lock, '', waiting, 0) end
  local held = { 'HELD', now, waiting, blocked, describe_reason(lock, found) }
  held[8] = lock.stored
  return as_member(marker, run, held)
end
for _, each in ipairs(locks) do
  if each.unmarked then redis.call('HSET', each.key, 'k', KIND, 'p', each.paused.text) end
  if not each.queue.mine then join_queue(each) end
end
local places = {}
for i, each in ipairs(locks) do
  sign_on(each)
  places[i] = each.place .. (each.listed and '/' .. whole(each.listed) or '')
  local passed = not each.obstacle and not each.next
  if left or passed then wake(each, each.parent, each.family, true, not left and place_ttl) end
end
places = table.concat(places, ' ')

-- In which place it waits; where it waits for some of them, the best one.
local function position()
  if could_be_granted then return 1 end
  local best = ahead(lock)
  for _, each in ipairs(take and locks or {}) do
    if each.obstacle or not each.next then best = math.min(best, ahead(each)) end
  end
  return best
end

-- In how many ms the first lock that it comes first for may be free, as far as that is known.
local function soonest()
  local till = math.huge
  for _, each in ipairs(locks) do
    local what = (each.is_first or not each.first) and each.obstacle
    if what and not what.closed then till = math.min(till, what.till) end
  end
  return till < math.huge and math.max(till - now, 0) or 0
end

if grace > 0 and not found then
  return { 'GRACE', now, grace, places, position(), dropped and 1 or 0 }
end
if found and found.closed then
  return describe_closed(lock, places, position(), dropped and 1 or 0)
end
local queued = { 'QUEUED', now, places, position(), dropped and 1 or 0, blocked,
                 describe_reason(lock, found) }
if take then queued[8] = soonest() end
queued[10] = lock.stored
return queued
