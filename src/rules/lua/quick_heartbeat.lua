-- The usual call of a waiter: holders keep it out as before, and all there is to do is to keep its
-- places. The rest of acquire.lua would come to the same result, with twice as many commands and
-- all of its functions; it serves each call that is not as usual, or that takes more than one look
-- at a lock. Nothing here changes what it finds then.
--- @include "families"
--- @include "tickets"

-- Whether only the holders may keep a waiter out, and they are known.
local function is_plain(lock)
  local h, mode, limit = lock.held, args.mode, args.limit
  if lock.stored or lock.paused or next(lock.families) then return false end
  if mode == 'l' and limit == 0 then return false end
  return not h or not is_in_doubt(h) and h.oldest ~= '-' and (h.mode == 'l') == (mode == 'l')
    and (mode ~= 'l' or h.limit == limit)
end

-- Whether the text is the record of a waiter that is alive, and was not told to call.
local function is_alive(text)
  local w = text and read_waiter(text)
  return w and not w.far and w.deadline > now and w.deadline <= now + args.place_ttl
end

-- The caller's own record, with what the answer needs besides; nil if there is more to do. A waiter
-- that waits only for other keys from now on calls others; one that did so before has called them.
local function read_place(lock)
  local queue, held = lock.queue, lock.held
  local ticket = lock.place and number(string.match(lock.place, '^q:(%d+)$'))
  -- It must be in the queue, and not have been called.
  if not ticket or ticket < queue.first or ticket > queue.last or ticket <= queue.called
    or not is_plain(lock) then
    return nil
  end
  local found = redis.call('HMGET', lock.key, lock.place, 'q:' .. whole(queue.first), 'o',
    held and 'h:' .. held.oldest or 'h')
  local waiter = found[1] and read_waiter(found[1])
  local ordered = found[3] and string.find(found[3], ' ', 1, true)
  if not waiter or ordered or is_overtaken(waiter.who) then return nil end
  local is_first = ticket == queue.first
  if not is_first and not is_alive(found[2]) then return nil end
  waiter.ticket, waiter.oldest, waiter.kept_out =
    ticket, found[4] or '', not has_room(held, args.mode)
  return (waiter.kept_out or is_first and waiter.elsewhere) and waiter or nil
end

local function quick_heartbeat()
  if args.place_ttl == 0 or args.grace > 0 or not locks[1].place or args.mirror or args.done
    or args.take or args.replace then
    return nil
  end
  local mine, blocked = {}, nil
  for i, lock in ipairs(locks) do
    mine[i] = read_place(lock)
    if not mine[i] then return nil end
    if mine[i].kept_out then blocked = blocked or i end
  end
  if not blocked then return nil end
  local places = {}
  for i, lock in ipairs(locks) do
    keep_place(lock, mine[i], mine[i].ticket, args.far_ttl)
    mine[i].elsewhere, mine[i].who = not mine[i].kept_out, with_attempt(mine[i].who)
    keep(lock, 0)
    redis.call('HSET', lock.key, lock.place, write_waiter(mine[i]))
    places[i] = lock.place
  end
  local lock, waiter = locks[blocked], mine[blocked]
  local queued = { 'QUEUED', now, table.concat(places, ' '),
                   in_use(lock, lock.queue, lock.queue.first, waiter.ticket), 0, blocked,
                   lock.held.count, lock.held.earliest - now,
                   string.match(waiter.oldest, '^[^\n]*') }
  return tell_kept(queued, lock, 11)
end
