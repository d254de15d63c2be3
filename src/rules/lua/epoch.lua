-- Whether the server may have forgotten locks. A server that was started again, emptied, restored
-- from a file or promoted may have, and grants nothing new until every lease that it may have
-- forgotten has ended. One hash for all locks, the marker, tells:
--   r, i   run_id and replication id of the server that wrote the marker. A server with a copy of
--          the marker, from its master or from a file, has another run_id; a server that was a
--          replica in between has another replication id
--   l      the longest lease that was asked for, in ms; if the marker was forgotten as well, the
--          longest since then
--   u      until when nothing new is granted
--   w      when the marker was written
--- @include "lock"

-- Returns for how many ms the server grants nothing new to an owner that asks for such a lease
-- (ms): mostly 0; a lease of time, if the server may have forgotten locks. marker: the key of the
-- marker, which is written when it has changed, and once a day, so that it does not expire. anew:
-- mark the server as one that has forgotten nothing.
local function grace_left(marker, lease, anew)
  local AGE = YEAR    -- a marker that was forgotten costs one lease of waiting
  local DAY = 86400000
  local LEASE = 30000 -- ms: where no lease is known

  -- Returns the run_id of the server, its replication id, and whether it was promoted: whether it
  -- was a replica before. A promoted server keeps the id of its former master besides its own. The
  -- replication id also changes when a server gets its first replica, or has had none for long;
  -- then it has no former one.
  local function identify()
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
    local replication = redis.call('INFO', 'replication')
    local id = string.match(replication, 'master_replid:(%x+)')
    local former_id = string.match(replication, 'master_replid2:(%x+)') -- zeros: there is none
    if not run or not id or not former_id then
      error('this server does not tell its run_id and master_replid', 0)
    end
    return run, id, string.find(former_id, '[^0]') ~= nil
  end

  local run, id, promoted = identify()

  -- Writes the marker: the longest lease (ms) that was asked for, and the time (ms) until which
  -- nothing new is granted; 0: granted at once. PEXPIRE comes first, so that a full server writes
  -- it, too (lock.lua); and last, for a marker that was not there.
  local function write_marker(longest, till)
    redis.call('PEXPIRE', marker, AGE)
    redis.call('HSET', marker, 'r', run, 'i', id, 'l', whole(longest), 'u', whole(till),
      'w', whole(now))
    redis.call('PEXPIRE', marker, AGE)
  end

  if anew then
    write_marker(0, 0)
    return 0
  end
  local noted = redis.call('HMGET', marker, 'r', 'i', 'l', 'u', 'w')
  local run_before, id_before = noted[1], noted[2]
  local longest_before = number(noted[3]) or 0
  local till, written = number(noted[4]) or 0, number(noted[5]) or 0
  local longest = math.max(longest_before, lease)
  local may_have_forgotten = run_before ~= run or id_before ~= id and promoted
  local left = math.max(till - now, 0)
  if may_have_forgotten then
    if longest == 0 then longest = LEASE end
    left = longest
  elseif left > 0 then
    -- A lease longer than any before makes it longer; a clock that was set back does not.
    left = math.min(left + longest - longest_before, longest)
  end
  local changed = may_have_forgotten or id_before ~= id or longest > longest_before
    or left > 0 and till ~= now + left
  if changed or written > now or now - written > DAY then
    write_marker(longest, left > 0 and now + left or 0)
  end
  return left
end
