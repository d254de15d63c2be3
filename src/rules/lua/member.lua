-- A server that is one of a quorum tells for how long it remembers. It keeps one hash for all
-- locks, its marker:
--   run          the process of the server that was asked last
--   since        from when on that one has forgotten nothing
--   first        when any was asked for a lock
-- A process that is new may not know what the one before it did, even where some of that was saved.
-- One that has run scripts already and has no marker was flushed; one that has run none has
-- forgotten none since it started. Statistics count whole seconds, of two clocks. CONFIG RESETSTAT
-- forgets calls, but not the scripts that the server has in store: this one, and those before it.
local function beginning()
  local kept = string.match(redis.call('INFO', 'memory'), 'number_of_cached_scripts:(%d+)')
  if tonumber(kept or 0) > 1 then return now end
  for line in string.gmatch(redis.call('INFO', 'commandstats'), 'cmdstat_eval[^\r\n]*') do
    if string.match(line, 'calls=(%d+)') ~= string.match(line, 'failed_calls=(%d+)') then
      return now
    end
  end
  local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  return now - math.max(tonumber(uptime or 0) - 1, 0) * 1000
end

-- The answer as a member gives it; of a server that is none, as it is. Called last, since it begins
-- with PEXPIRE.
-- {'MEMBER', ms since "since", ms since "first", answer, locks}: both times 1 at least; of a grant,
-- for each lock 1 if it is an ancestor's here
local function as_member(marker, run, answer, locks)
  if not run then return answer end
  redis.call('PEXPIRE', marker, WEEK)
  local v = redis.call('HMGET', marker, 'run', 'since', 'first')
  local since, first = number(v[2]), number(v[3])
  if not since or since > now or run ~= v[1] then
    since = since and run == v[1] and now or beginning()
    first = first and math.min(first, now) or now
    redis.call('HSET', marker, 'run', run, 'since', whole(since), 'first', whole(first))
    redis.call('PEXPIRE', marker, WEEK)
  end
  local nested = {}
  for i, lock in ipairs(locks or {}) do
    nested[i] = lock.family and lock.family.name ~= lock.owner and 1 or 0
  end
  return { 'MEMBER', now - since + 1, now - (first or since) + 1, answer, nested }
end

-- The fence that a holder has settled on for all servers of its quorum, instead of the one that it
-- was given here.
local function settle(lock, e, fence)
  e.rest = fence .. string.sub(e.rest, #e.fence + 1)
  e.fence = fence
  if tonumber(fence) > lock.fence then
    lock.fence = tonumber(fence)
    redis.call('HSET', lock.key, 'f', fence)
  end
end
