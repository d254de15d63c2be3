--- @include "lock"

-- Raises lock.fence to the next fencing token, and returns it as text. It is greater than all
-- before, even where the server has forgotten them, since it is the time in us at least. least: the
-- proposal of a quorum.
local function next_fence(lock, least)
  lock.fence = math.max(lock.fence + 1, now_us, least or 0)
  return lock.fence == now_us and us_text or whole(lock.fence)
end
