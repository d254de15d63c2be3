-- A place in the queue, as acquire.lua keeps it.
--- @include "conditions"
--- @include "waiter"

local COUNTED = 100 -- tickets

-- The token and the limit with which the lock may be handed over to this place, and until when.
local function offer(lock)
  if not ask.offer then return nil end
  local lasts = tonumber(ask.offer_ms)
  return table.concat({ ask.offer, whole(limit_of(lock)), whole(now + lasts), whole(lasts) }, '/')
end

-- How many tickets of a line, from one to another, are in use. Only a request that counts leaves
-- out the holes, and no more than a hundred: the cost of a heartbeat must not grow with the queue.
local function in_use(lock, line, first, last)
  if not ask.count or last - first >= COUNTED then return last - first + 1 end
  local names, used, before = {}, 0, (line.base or 'o:' .. line.priority) .. ':'
  for n = first, last do names[#names + 1] = before .. whole(n) end
  if not names[1] then return 0 end
  for _, text in ipairs(redis.call('HMGET', lock.key, unpack(names))) do
    if text then used = used + 1 end
  end
  return used
end
