-- A place in the queue, as acquire.lua keeps it. NEAR and far are explained in waiter.lua.
--- @include "acquire/conditions"
--- @include "waiter"

local COUNTED = 100 -- tickets

-- The token and the limit with which the lock may be handed over to this place, and until when.
local function make_offer(lock)
  if not args.accept_by_message then return nil end
  local lasts = tonumber(args.accept_ms)
  return table.concat({ args.accept_by_message, whole(limit_of(lock)), whole(now + lasts),
                        whole(lasts) }, '/')
end

-- Keeps a waiter's place for another while: for the usual time, or, if it is far, for longer, by
-- the square of how far back it is, and for far_ttl at most. A far waiter offers nothing, as its
-- offer would be too old when its turn comes. The caller of this function writes the record.
-- Returns for how many ms the place of a far waiter is kept; nil or false for any other.
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

-- How many tickets of a line, from one to another, are in use. Only a request that counts leaves
-- out the holes, and no more than a hundred: the cost of a heartbeat must not grow with the queue.
local function count_in_use(lock, line, first, last)
  if not args.count or last - first >= COUNTED then return last - first + 1 end
  local names, used, before = {}, 0, (line.base or 'o:' .. line.priority) .. ':'
  for n = first, last do names[#names + 1] = before .. whole(n) end
  if not names[1] then return 0 end
  for _, text in ipairs(redis.call('HMGET', lock.key, unpack(names))) do
    if text then used = used + 1 end
  end
  return used
end
