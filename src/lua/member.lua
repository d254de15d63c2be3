-- A server that is one of a quorum tells for how long it remembers. It keeps one hash for all locks, its marker:
--   run          the process of the server that was asked last
--   since        when that one was first asked for a lock
--   first        when any was that left something behind
-- A process that is new may not know what the one before it did, even where some of that was saved.

-- The answer as a member gives it; without a marker, as it is. Called last, since it begins with PEXPIRE.
-- {'MEMBER', ms since "since", ms since "first", answer, locks}: both times 1 at least; of a grant, for each lock
-- 1 if it is an ancestor's here
local function as_member(marker, run, answer, locks)
  if not marker then return answer end
  redis.call('PEXPIRE', marker, WEEK)
  local v = redis.call('HMGET', marker, 'run', 'since', 'first')
  local since, first = number(v[2]), number(v[3])
  if not since or since > now or run ~= v[1] then
    since = now
    first = first and math.min(first, now) or now
    redis.call('HSET', marker, 'run', run, 'since', whole(since), 'first', whole(first))
    redis.call('PEXPIRE', marker, WEEK)
  end
  local nested = {}
  for i, lock in ipairs(locks or {}) do nested[i] = lock.family and lock.family.name ~= lock.owner and 1 or 0 end
  return { 'MEMBER', now - since + 1, now - (first or since) + 1, answer, nested }
end

-- The fence that a holder has settled on for all servers of its quorum, instead of the one that it was given here.
local function settle(lock, e, fence)
  e.rest = fence .. string.sub(e.rest, #e.fence + 1)
  e.fence = fence
  if tonumber(fence) > lock.fence then
    lock.fence = tonumber(fence)
    redis.call('HSET', lock.key, 'f', fence)
  end
end
