-- A place in the queue, as acquire.lua keeps it. NEAR and far are explained in waiter.lua.
--- @include "acquire/conditions"
--- @include "queue"

local COUNTED = 100 -- tickets

-- The offer of this place, as lock.lua describes it: with its token the lock may be handed over to
-- the caller, by message. nil if the caller accepts none.
local function make_offer(lock)
  if not args.accept_by_message then return nil end
  local lasts = tonumber(args.accept_ms)
  return table.concat({ args.accept_by_message, whole(limit_of(lock)), whole(now + lasts),
                        whole(lasts) }, '/')
end

-- Keeps the caller's place for another while: sets the waiter's deadline, its offer and its mark
-- "far"; the caller of this function writes the record. A far place is kept for longer, by the
-- square of how far back it is, and for far_ttl ms at most: so many far waiters call no more often
-- than a few. It offers nothing, as its offer would be too old when its turn comes. Returns for how
-- many ms a far place is kept; nil or false for any other.
local function set_place_ttl(lock, waiter, ticket, far_ttl)
  local share = (ticket - lock.queue.first) / NEAR
  local far_kept = math.min(far_ttl, math.floor(request.place_ttl * share * share))
  waiter.far = share > 1 and far_kept > request.place_ttl and request.place_ttl or nil
  waiter.deadline = now + (waiter.far and far_kept or request.place_ttl)
  waiter.offer = not waiter.far and make_offer(lock) or nil
  return waiter.far and far_kept
end

-- Adds to an answer, as its element "at", for how long the place of a far waiter is kept.
local function with_far_ttl(answer, kept, at)
  if not kept then return answer end
  for i = #answer + 1, at - 1 do answer[i] = false end
  answer[at] = kept
  return answer
end

-- How many tickets of a line, from one to another, have a waiter. This is for people: so only a
-- request with args.count, which somebody watches, looks for the holes, and only among fewer than
-- COUNTED tickets, as the cost of a heartbeat must not grow with the queue. Otherwise all count.
local function count_in_use(lock, line, first, last)
  if not args.count or last - first >= COUNTED then return last - first + 1 end
  local names, used = {}, 0
  for n = first, last do
    names[#names + 1] = line.priority and list_field(line, n) or place_of(line, n)
  end
  if not names[1] then return 0 end
  for _, text in ipairs(redis.call('HMGET', lock.key, unpack(names))) do
    if text then used = used + 1 end
  end
  return used
end
