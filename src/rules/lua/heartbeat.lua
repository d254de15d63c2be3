-- The usual call of who waits: others keep it out as before, nobody is gone, and all that is to be
-- done is to keep its places for another while. What follows in acquire.lua would come to the same,
-- by twice as many commands, and once the server has made all of its functions; it does whatever is
-- not as usual, or takes more than one look at a lock. Nothing here changes what it finds then.

-- The number of its place, if it is in the queue and was not called.
local function find_ticket(lock)
  local queue, ticket = lock.queue, lock.place and string.match(lock.place, '^q:(%d+)$')
  ticket = number(ticket)
  return ticket and ticket >= queue.first and ticket <= queue.last and ticket > queue.called
    and ticket
end

-- Whether nothing but those who hold it may keep anybody out, and they are known.
local function is_plain(lock)
  local h = lock.held
  if lock.stored or lock.paused or next(lock.families) then return false end
  if mode == 'l' and limit == 0 then return false end
  return not h or not is_in_doubt(h) and h.oldest ~= '-' and (h.mode == 'l') == (mode == 'l')
    and (mode ~= 'l' or h.limit == limit)
end

-- Whether that is one who waits, and lives.
local function is_alive(text)
  local w = text and read_waiter(text)
  return w and w.deadline > now and w.deadline <= now + place_ttl
end

-- Its own record, with what is needed besides; nil where more is to be done. Who waits for other
-- keys alone from now on calls others; who did so before has called them.
local function look(lock)
  local ticket, queue, held = find_ticket(lock), lock.queue, lock.held
  if not ticket or not is_plain(lock) then return nil end
  local found = redis.call('HMGET', lock.key, lock.place, 'q:' .. whole(queue.first), 'o',
    held and 'h:' .. held.oldest or 'h')
  local waiter = found[1] and read_waiter(found[1])
  local ordered = found[3] and string.find(found[3], ' ', 1, true)
  if not waiter or ordered then return nil end
  local is_first = ticket == queue.first
  if not is_first and not is_alive(found[2]) then return nil end
  waiter.ticket, waiter.oldest, waiter.kept_out = ticket, found[4] or '', not has_room(held, mode)
  return (waiter.kept_out or is_first and waiter.elsewhere) and waiter or nil
end

local function keep_place(lock, waiter)
  waiter.deadline, waiter.elsewhere, waiter.offer =
    now + place_ttl, not waiter.kept_out, offer(lock)
  keep(lock, 0)
  redis.call('HSET', lock.key, lock.place, write_waiter(waiter))
end

local mine, blocked = {}, nil
for i, lock in ipairs(locks) do
  mine[i] = look(lock)
  if not mine[i] then break end
  if mine[i].kept_out then blocked = blocked or i end
end
if blocked and #mine == #locks then
  local places = {}
  for i, lock in ipairs(locks) do
    keep_place(lock, mine[i])
    places[i] = lock.place
  end
  local lock, waiter = locks[blocked], mine[blocked]
  return { 'QUEUED', now, table.concat(places, ' '),
           in_use(lock, lock.queue, lock.queue.first, waiter.ticket), 0, blocked,
           lock.held.count, lock.held.earliest - now, string.match(waiter.oldest, '^[^\n]*') }
end
