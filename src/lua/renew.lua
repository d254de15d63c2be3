-- Extends a lease; never makes one.
-- ARGV: owner, lease
-- {'RENEWED', now, fence, 1 if it had run out before}   {'LOST', now, holder}   {'MISFIT', now, what}
local owner, lease = ARGV[1], tonumber(ARGV[2])

local lock, refusal = load_lock(owner)
if not lock then return refusal end
local holder = lock.holder
if not holder or holder.owner ~= owner then
  holder = living(holder)
  return { 'LOST', now, holder and holder.text or '' }
end
-- Run out, but nobody came: whoever comes replaces the entry, so it is as good as never run out.
local late = holder.deadline <= now
holder.deadline, holder.lease = now + lease, lease
keep(lock, lease)
redis.call('HSET', key, 'h', write_holder(holder))
return { 'RENEWED', now, whole(holder.fence), late and 1 or 0 }
