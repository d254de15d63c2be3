-- A place in the queue, as acquire.lua keeps it. NEAR and far are explained in waiter.lua.
--- @include "acquire/conditions"
--- @include "queue"

local COUNTED = 100 -- tickets

-- The caller's offer to take the lock by message, as its place has it: TOKEN/LIMIT/UNTIL/LEASE.
-- While it waits, another call may make it a holder, and tell it so by a message with that token.
-- nil if the caller does not accept the lock in this way.
local function make_offer(lock)
  if not args.accept_by_message then return nil end
  local lasts = tonumber(args.accept_ms)
  return table.concat({ args.accept_by_message, whole(limit_of(lock)), whole(now + lasts),
                        whole(lasts) }, '/')
end

-- Decides for how long the caller's place is kept from now on, and sets waiter.deadline,
-- waiter.offer and the mark waiter.far by that; the caller of this function writes the record. A
-- place with more than NEAR tickets before it is far, and kept for longer, by the square of how far
-- back it is, and for far_ttl ms at most: so many far waiters call no more often than a few. It
-- offers nothing, as its offer would be too old when its turn comes. ticket: the caller's; far_ttl:
-- 0: no place is far. Returns for how many ms a far place is kept; nil for any other.
local function set_place_ttl(lock, waiter, ticket, far_ttl)
  local distance = (ticket - lock.queue.first) / NEAR
  local kept_if_far = math.min(far_ttl, math.floor(request.place_ttl * distance * distance))
  local is_far = distance > 1 and kept_if_far > request.place_ttl
  waiter.far = is_far and request.place_ttl or nil
  waiter.deadline = now + (is_far and kept_if_far or request.place_ttl)
  waiter.offer = not is_far and make_offer(lock) or nil
  return is_far and kept_if_far or nil
end

-- Adds to an answer, as its element number "at", for how many ms the place of a far waiter is kept;
-- the elements that it lacks before that become false. kept: of set_place_ttl(); nil: the waiter is
-- not far, and nothing is added. Returns the answer.
local function with_far_ttl(answer, kept, at)
  if not kept then return answer end
  for i = #answer + 1, at - 1 do answer[i] = false end
  answer[at] = kept
  return answer
end

-- How many positions of a line, from "first" to "last", have a waiter. This is for people: so only
-- a request with args.count, which somebody watches, leaves out the holes, and only among fewer
-- than COUNTED positions, as the cost of a heartbeat must not grow with the queue. Otherwise all
-- count.
local function count_in_use(lock, line, first, last)
  local is_list = line.priority
  if not args.count or last - first >= COUNTED then return last - first + 1 end
  local fields, used = {}, 0
  for position = first, last do
    fields[#fields + 1] = is_list and list_field(line, position) or place_of(line, position)
  end
  if not fields[1] then return 0 end
  for _, text in ipairs(redis.call('HMGET', lock.key, unpack(fields))) do
    if text then used = used + 1 end
  end
  return used
end
