--- @include "lock"

-- Raises lock.fence to the next fencing token, and returns that as text; the caller writes it to
-- the field f. It is greater than all before, even where the server has forgotten them, since it is
-- at least the time in us. least: a number that it must reach, too, which a quorum proposes to all
-- its servers; nil: none.
local function next_fence(lock, least)
  lock.fence = math.max(lock.fence + 1, now_us, least or 0)
  return lock.fence == now_us and us_text or whole(lock.fence)
end
