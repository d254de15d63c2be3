-- Who waits for a lock, and where.

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
