-- The memory that a lock has of its runs. It is for people: if the server has no room for it, the
-- lock works as well.
--- @include "lock"

local RUNS = 20 -- that a lock remembers

-- Returns the name of the field n:WHAT, which counts the runs or requests that ended without
-- success in that way (what: refused, failed, lost...), and its new text: one more, the last of
-- them at that time (ms, as text). The caller writes it.
local function next_tally(lock, what, at)
  local count = string.match(redis.call('HGET', lock.key, 'n:' .. what) or '', '^%d+')
  return 'n:' .. what, whole((tonumber(count) or 0) + 1) .. ' ' .. at
end

-- Returns how the run of an entry has ended, and the notes for its record. notes: what the release,
-- or the script that found it dead, says; their first word is how it ended (ran, killed, timed,
-- lost, expired, revoked), with two exceptions. A holder that was asked to release the lock, and
-- has lost it otherwise, has lost it to the one who asked: revoked. A reservation that has expired
-- has ended with its time, and nothing has died: nil.
local function ending_of(entry, notes)
  local how = string.match(notes, '^%a+')
  if (how == 'lost' or how == 'expired') and has_note(entry.rest, 'asked=') then
    return 'revoked', 'revoked=1' .. string.sub(notes, #how + #'=1' + 1)
  end
  if how == 'expired' and has_note(entry.rest, 'reserved=1') then return nil, '' end
  return how, notes
end

-- Whether the run of this entry is the whole work that the lock was for, as --unless-done counts
-- it. One that nests in another is a part of that one's work; but a reservation has no work of its
-- own, so a run that nests directly in one counts.
local function is_whole_work(entry, family)
  if family.name == entry.owner then return true end
  local first = family.entries[1]
  local is_below_reservation = first.owner == family.name and has_note(first.rest, 'reserved=1')
  local nests_directly = not string.find(entry.owner, '.', #family.name + 2, true)
  return is_below_reservation and nests_directly
end

-- Counts the run of an entry in lock.ran, the text of the field c (NUMBER WAITED BEGAN LAST), which
-- the caller writes. succeeded: when (ms, as text) the run did what the lock is for; nil: it did
-- not. Returns the number of the run, counted from 0. Every release pays for this: so a number that
-- does not change stays text.
local function count_run(lock, entry, succeeded)
  local ended, waited, began, last = string.match(lock.ran, '^(%d+) (%d+) (%d+) (%d+)$')
  -- The numbers of a real lock are shorter than 64 bytes: what is longer no script has written.
  if not last or #lock.ran > 64 then ended, waited, began, last = 0, 0, '0', '0' end
  if succeeded then
    local began_before = tonumber(began)
    -- The later beginning is kept; one in the future is of a clock that was set back since.
    if began_before > now or began_before < entry.since then
      began = entry.since_text or whole(entry.since)
    end
    last = succeeded
  end
  if has_note(entry.rest, 'waited=') then
    waited = whole(waited + (string.match(entry.rest, ' waited=(%d+)') or 0))
  end
  lock.ran = whole(ended + 1) .. ' ' .. waited .. ' ' .. began .. ' ' .. last
  return ended
end

-- Remembers that the run of an entry of this family has ended: counts it in the fields c and
-- n:WHAT, and writes its record to r:N. said: how it has ended, the notes of a release, or of the
-- script that found it dead. A lock that was released unused had no run, and the run of one that
-- --at-least keeps was remembered when its command ended. A full server remembers nothing (pcall).
local function remember(lock, family, entry, said)
  local how, notes = ending_of(entry, said)
  if how == 'unused' or how == 'refused' or has_note(entry.rest, 'kept=1') then return end
  -- The time at which a dead one was found says nothing.
  local found_dead = string.find(said, '^expired') and entry.deadline < now
  local at = found_dead and whole(entry.deadline) or now_text
  local succeeded = how == 'ran' and has_note(notes, 'exit=0')
  local done_at = succeeded and is_whole_work(entry, family) and at or nil
  local field = 'r:' .. whole(count_run(lock, entry, done_at) % RUNS)
  local who = string.sub(entry.rest, -1) == ' ' and NOBODY or '' -- where "rest" ends without WHO
  local run = at .. ' ' .. entry.rest .. who .. (how and ' ' or '') .. notes
  if succeeded or not how then
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run)
  else
    local what = (how == 'ran' or how == 'killed') and 'failed' or how
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run, next_tally(lock, what, at))
  end
end

-- The record, as r:N has it, of the run that began at that time (ms) and has succeeded; '' if it is
-- forgotten, as more than RUNS have ended since.
local function successful_run(lock, began)
  local fields = {}
  for n = 0, RUNS - 1 do fields[n + 1] = 'r:' .. n end
  for _, run in ipairs(redis.call('HMGET', lock.key, unpack(fields))) do
    local since = run and string.match(run, '^%d+ %d+ %S+ (%d+) ')
    if since and number(since) == began and has_note(run, 'exit=0') then return run end
  end
  return ''
end

-- The record, as r:N has it, of the run that tells why the owner has lost the lock, if it was taken
-- away from it: its own latest run, or else that of the nearest ancestor, with which it lost the
-- lock. nil if that run ended in another way, or is forgotten.
local function revoked_run(lock, owner)
  local fields = { 'c' }
  for n = 0, RUNS - 1 do fields[n + 2] = 'r:' .. n end
  local found = redis.call('HMGET', lock.key, unpack(fields)) -- c, then r:0 to r:19
  local ended = number(string.match(found[1] or '', '^%d+')) or 0
  local path = lineage(owner)
  for i = #path, 1, -1 do -- the owner first, then its ancestors
    for ago = 1, RUNS do -- the latest run is the one before number "ended"
      local run = found[(ended - ago) % RUNS + 2]
      if run and string.find(run, ' ' .. path[i] .. ' ', 1, true) then
        return has_note(run, 'revoked=1') and run or nil
      end
    end
  end
end
