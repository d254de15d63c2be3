-- Gives back what the owner holds and its places in the queues, and wakes whoever is next.
-- ARGV: owner, for how many ms the owner is barred from acquiring afterwards (0: not at all),
--       for how many ms after it was acquired a lock is kept at least, not_after (server ms; 0: any time)
-- {'RELEASED', now}   {'STALE', now}   {'ABSENT', now, which key, holders, ms, holder}   {'MISFIT', now, what, which key}
local owner, bar, at_least = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local not_after = tonumber(ARGV[4] or 0)

-- Executed late: the owner may have come again, and this is not about what it holds now.
if not_after > 0 and now > not_after then return { 'STALE', now } end

-- The owner's acquisition may be under way still, in a socket or a proxy. When it arrives, it finds this.
local function bar_owner(lock)
  local barred = owner .. '=' .. whole(now + bar) .. ';'
  for name, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    if tonumber(deadline) > now and name ~= owner then barred = barred .. name .. '=' .. deadline .. ';' end
  end
  redis.call('HSET', lock.key, 't', barred, 'k', KIND)
  keep(lock, 0)
end

-- It was acquired too short a time ago: it runs out when that has passed. Nobody came from the future: the clock
-- was set back.
local function let_run_out(lock, own, family)
  own.deadline, own.lease = math.min(own.since, now) + at_least, at_least
  lock.held.earliest = math.min(lock.held.earliest, own.deadline)
  lock.held.longest = math.max(lock.held.longest, own.lease)
  keep(lock, 0)
  write_held(lock)
  write_family(lock, family)
end

local function release(lock)
  local own, family = find_entry(lock, owner)
  local mode

  keep(lock, 0)
  if own and at_least > 0 and own.since + at_least > now then
    let_run_out(lock, own, family)
  elseif own then
    mode = remove(lock, own, family)
  end
  leave_queue(lock)
  if bar > 0 then bar_owner(lock) end
  if not family then family = select(2, find_parent(lock)) end
  wake_after(lock, owner, family, mode)
  return own
end

local worst
for i, key in ipairs(KEYS) do
  local lock, refusal = load_lock(key, owner)
  if not lock and refusal.err then return refusal end
  if not lock then
    refusal[4] = i
    worst = refusal
  elseif not release(lock) then
    worst = worst or { 'ABSENT', now, i, present(lock) }
  end
end
return worst or { 'RELEASED', now }
