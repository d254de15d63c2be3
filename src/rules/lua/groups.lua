-- Of a group, only the waiter that queued up last waits: the one before it is sent away.
--- @include "places"

local SENT_AWAY = 64 -- are told so, however late they ask

-- The waiter of the group that has a place, dead or alive, and the place; nil if no other has one.
local function waits_in_group(lock)
  local other = redis.call('HGET', lock.key, group_field(lock, place_of(lock.queue, 0), ask.who))
  local place = other and other ~= ask.owner and redis.call('HGET', lock.key, 'w:' .. other)
  local text = place and ticket_of(lock, place) and redis.call('HGET', lock.key, place)
  local waiter = text and read_waiter(text)
  if waiter and waiter.owner == other then return waiter, place end
end

-- The record of the waiter that came instead; nil if none did. A caller that had a place, and was
-- dropped from it, came before those that wait now.
local function superseded_by(lock)
  if lock.queue.mine then return nil end
  local known = redis.call('HGET', lock.key, 'g') or ''
  local _, at = string.find('\n' .. known, '\n' .. ask.owner .. ' ', 1, true)
  if at then return string.match(known, '^[^\n]*', at) end
  local waiter = had[1] and waits_in_group(lock)
  return waiter and show_waiter(waiter)
end

local function note_sent_away(lock, other)
  local me = { deadline = now + ask.place_ttl, owner = ask.owner, since = whole(now),
               mode = ask.mode, who = ask.who }
  local lines = { other .. ' ' .. write_waiter(me) }
  local known = redis.call('HGET', lock.key, 'g') or ''
  for line in string.gmatch(known, '[^\n]+') do table.insert(lines, #lines, line) end
  redis.call('HSET', lock.key, 'k', lock.kind, 'g',
    table.concat(lines, '\n', math.max(#lines - SENT_AWAY, 0) + 1))
end

-- Sends away the other waiter. One that was handed the lock in the same moment has no place any
-- more, and runs.
local function supersede(lock)
  local waiter, place
  if not lock.queue.mine then waiter, place = waits_in_group(lock) end
  if not waiter then return end
  keep(lock, ask.lease)
  clear_place(lock, place, waiter)
  note_sent_away(lock, waiter.owner)
  notify(lock, waiter)
end

-- The answer to a caller that was sent away from one of its queues, which leaves all others.
-- Otherwise it sends away the others of its group.
local function follow_group()
  if not ask.latest then return nil end
  for i, lock in ipairs(locks) do
    local by = superseded_by(lock)
    if by then
      leave_all()
      return { 'SUPERSEDED', now, i, by }
    end
  end
  for _, lock in ipairs(ask.place_ttl > 0 and locks or {}) do supersede(lock) end
end
