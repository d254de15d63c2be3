-- Gives back what the owner holds and its place in the queue, and wakes whoever is next.
-- ARGV: owner, for how many ms the owner is barred from acquiring afterwards (0: not at all)
-- {'RELEASED', now}   {'ABSENT', now, holder}   {'MISFIT', now, what}
local owner, bar = ARGV[1], tonumber(ARGV[2])

local lock, refusal = load_lock(owner)
if not lock then return refusal end

-- The owner's acquisition may be under way still, in a socket or a proxy. When it arrives, it finds this.
local function bar_owner()
  local barred = owner .. '=' .. whole(now + bar) .. ';'
  for name, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    if tonumber(deadline) > now and name ~= owner then barred = barred .. name .. '=' .. deadline .. ';' end
  end
  redis.call('HSET', key, 't', barred, 'k', KIND)
end

keep(lock, 0)
local mine = lock.holder and lock.holder.owner == owner
if mine then redis.call('HDEL', key, 'h') end
leave_queue(lock, owner)
if bar > 0 then
  bar_owner()
  keep(lock, 0)
end
local holder = not mine and living(lock.holder) or nil
if not holder then poke(head_of_queue(lock)) end
if mine then return { 'RELEASED', now } end
return { 'ABSENT', now, holder and holder.text or '' }
