-- Of a group, who queues up last waits alone: who waited before is sent away.
local SENT_AWAY = 64 -- are told so, however late they ask

-- Who of the group has a place, dead or alive, and where; nil if nobody else has.
local function waits_in_group(lock)
  local other = redis.call('HGET', lock.key, group_field(lock, place_of(lock.queue, 0), who))
  local place = other and other ~= owner and redis.call('HGET', lock.key, 'w:' .. other)
  local text = place and ticket_of(lock, place) and redis.call('HGET', lock.key, place)
  local waiter = text and read_waiter(text)
  if waiter and waiter.owner == other then return waiter, place end
end

-- The record of who came instead; nil if nobody did. Who had a place, and was dropped from it, came
-- before those that wait now.
local function superseded_by(lock)
  if lock.queue.mine then return nil end
  local known = redis.call('HGET', lock.key, 'g') or ''
  local _, at = string.find('\n' .. known, '\n' .. owner .. ' ', 1, true)
  if at then return string.match(known, '^[^\n]*', at) end
  local waiter = had[1] and waits_in_group(lock)
  return waiter and show_waiter(waiter)
end

-- The answer to who was sent away from one of its queues, and leaves all others.
local function find_superseded()
  for i, lock in ipairs(locks) do
    local by = superseded_by(lock)
    if by then
      leave_all()
      return { 'SUPERSEDED', now, i, by }
    end
  end
end

local function note_sent_away(lock, other)
  local me = { deadline = now + place_ttl, owner = owner, since = whole(now), mode = mode,
               who = who }
  local lines = { other .. ' ' .. write_waiter(me) }
  local known = redis.call('HGET', lock.key, 'g') or ''
  for line in string.gmatch(known, '[^\n]+') do table.insert(lines, #lines, line) end
  redis.call('HSET', lock.key, 'k', KIND, 'g',
    table.concat(lines, '\n', math.max(#lines - SENT_AWAY, 0) + 1))
end

-- Who was handed the lock in the same moment has no place any more, and runs.
local function supersede_all()
  for _, lock in ipairs(locks) do
    local waiter, place
    if not lock.queue.mine then waiter, place = waits_in_group(lock) end
    if waiter then
      keep(lock, lease)
      clear_place(lock, place, waiter)
      note_sent_away(lock, waiter.owner)
      poke(lock, waiter)
    end
  end
end
