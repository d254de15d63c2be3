-- A server of a quorum tells for how long it remembers. It keeps one hash for all locks, its
--   marker: run          the process of the server that was asked last
--   since        from when on that process has forgotten nothing
--   first        when any of them was first asked for a lock
--- @include "arguments"
--- @include "lock"

-- Keeps the marker, and writes it if the process of the server is another one than when it was
-- asked last. Returns since when this process has forgotten nothing, and when any was first asked
-- for a lock, in ms. It begins with PEXPIRE, which lets any write behind it pass a full server: so
-- it is called when a script has written all else.
local function keep_marker()
  -- Returns since when a process without a marker of its own has forgotten nothing, in ms. It may
  -- not know what the one before it did, even if some of that was saved. A
  -- process that has run scripts already and has no marker was flushed; one that has run none has
  -- forgotten none since it started. Statistics count whole seconds, of two clocks. CONFIG
  -- RESETSTAT forgets calls, but not the scripts that the server has in store: this one, and those
  -- before it.
  local function remembers_since()
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

  redis.call('PEXPIRE', args.member, WEEK)
  local v = redis.call('HMGET', args.member, 'run', 'since', 'first')
  local run, since, first = v[1], number(v[2]), number(v[3])
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

-- Gives the answer of a member of a quorum, which is the last thing that a script does; that of any
-- other server is unchanged. locks: those that the answer grants; nil: it grants none.
-- {'MEMBER', ms since "since", ms since "first", answer, locks}: both times are at least 1; "locks"
-- has, of a grant, a 1 for each lock that an ancestor holds here
local function member_answer(answer, locks)
  if not args.member then return answer end
  local since, first = keep_marker()
  local nested = {}
  for i, lock in ipairs(locks or {}) do
    nested[i] = lock.family and lock.family.name ~= lock.owner and 1 or 0
  end
  return { 'MEMBER', now - since + 1, now - first + 1, answer, nested }
end
