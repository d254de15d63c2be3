-- A server of a quorum tells for how long it remembers. It keeps one hash for all locks, its
--   marker: run          the process of the server that was asked last
--   since        from when on that process has forgotten nothing
--   first        when any of them was first asked for a lock
--- @include "arguments"
--- @include "lock"

-- Keeps the marker, and writes it if the process of the server (args.server) is another one than
-- when it was asked last. Returns two times in ms: since when this process has forgotten nothing,
-- and when any process of this server was first asked for a lock. A script calls it when it has
-- written all else: it begins with PEXPIRE, which lets any write behind it pass a full server.
local function keep_marker()
  -- Returns since when (ms) a process that has not written the marker has forgotten nothing. If it
  -- has run scripts already, it was flushed, and that was now at the latest. If it has run none, it
  -- has forgotten nothing since it started; of what the process before it did, it may know nothing,
  -- even if some of that was saved. Whether it has run scripts is told by two statistics, as CONFIG
  -- RESETSTAT forgets the calls, but not the scripts that the server has in store: this one, and
  -- those before it. Its uptime is in whole seconds, by another clock: so one second less.
  local function remembers_since()
    local stored = string.match(redis.call('INFO', 'memory'), 'number_of_cached_scripts:(%d+)')
    if tonumber(stored or 0) > 1 then return now end
    for line in string.gmatch(redis.call('INFO', 'commandstats'), 'cmdstat_eval[^\r\n]*') do
      local calls = string.match(line, 'calls=(%d+)')
      local failed_calls = string.match(line, 'failed_calls=(%d+)')
      if calls ~= failed_calls then return now end
    end
    local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
    return now - math.max(tonumber(uptime or 0) - 1, 0) * 1000
  end

  redis.call('PEXPIRE', args.member, WEEK)
  local marker = redis.call('HMGET', args.member, 'run', 'since', 'first')
  local run, since, first = marker[1], number(marker[2]), number(marker[3])
  local is_same = args.server == run
  if not since or since > now or not is_same then
    -- If the clock was set back, the same process is trusted from now on.
    since = since and is_same and now or remembers_since()
    first = first and math.min(first, now) or now
    redis.call('HSET', args.member, 'run', args.server, 'since', whole(since),
      'first', whole(first))
    redis.call('PEXPIRE', args.member, WEEK)
  end
  return since, first or since
end

-- Wraps the answer of a script, where the server is a member of a quorum, with what the caller must
-- know of the server; that of any other server is returned as it is. A script calls it last. locks:
-- those that the answer grants; nil: it grants none. Returns
--   {'MEMBER', ms since "since", ms since "first", answer, nested}
-- where both times are at least 1, and "nested" has a 1 for each lock granted that an ancestor of
-- the owner holds here, and a 0 for each other.
local function member_answer(answer, locks)
  if not args.member then return answer end
  local since, first = keep_marker()
  local nested = {}
  for i, lock in ipairs(locks or {}) do
    local has_ancestor = lock.family and lock.family.name ~= lock.owner
    nested[i] = has_ancestor and 1 or 0
  end
  return { 'MEMBER', now - since + 1, now - first + 1, answer, nested }
end
