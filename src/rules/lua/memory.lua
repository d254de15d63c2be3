-- The memory that a lock has of its runs. It is for people: if the server has no room for it, the
-- lock works as well.
--- @include "lock"

local RUNS = 20 -- that a lock remembers

-- The field n:WHAT, which counts what did not succeed, and its new text, with one more, at that
-- time (ms, as text). The caller writes it.
local function next_tally(lock, what, at)
  local count = string.match(redis.call('HGET', lock.key, 'n:' .. what) or '', '^%d+')
  return 'n:' .. what, whole((tonumber(count) or 0) + 1) .. ' ' .. at
end

-- How the run of e has ended, of which a release or a script says "notes": their first word (ran,
-- killed, timed, lost, expired, revoked; nil: a reservation, which ends with its time, and nothing
-- has died), and the notes for its record. A holder that was asked to release, and has not, has
-- lost the lock to the one who asked.
local function ending_of(e, notes)
  local how = string.match(notes, '^%a+')
  if (how == 'lost' or how == 'expired') and has_note(e.rest, 'asked=') then
    return 'revoked', 'revoked=1' .. string.sub(notes, #how + #'=1' + 1)
  end
  if how == 'expired' and has_note(e.rest, 'reserved=1') then return nil, '' end
  return how, notes
end

-- Whether the run of e is the whole work that the lock was for, as --unless-done counts it. One
-- that nests in another is a part of that one's work; but a reservation has none, so what nests
-- directly in it counts.
local function is_whole_work(e, family)
  if family.name == e.owner then return true end
  local first = family.entries[1]
  return first.owner == family.name and has_note(first.rest, 'reserved=1')
    and not string.find(e.owner, '.', #family.name + 2, true)
end

-- Counts the run of e in lock.ran, the text of the field c; the caller writes that. succeeded: at
-- which time (ms, as text) the whole work did; nil: it did not. Returns the run's number. Every
-- release pays for this: a number that does not change stays text.
local function count_run(lock, e, succeeded)
  local ended, waited, began, last = string.match(lock.ran, '^(%d+) (%d+) (%d+) (%d+)$')
  -- The numbers of a real lock are shorter than 64 bytes: what is longer no script has written.
  if not last or #lock.ran > 64 then ended, waited, began, last = 0, 0, '0', '0' end
  if succeeded then
    local before = tonumber(began)
    -- If the clock was set back, the latest time is not the greatest.
    if before > now or before < e.since then began = e.since_text or whole(e.since) end
    last = succeeded
  end
  if has_note(e.rest, 'waited=') then
    waited = whole(waited + (string.match(e.rest, ' waited=(%d+)') or 0))
  end
  lock.ran = whole(ended + 1) .. ' ' .. waited .. ' ' .. began .. ' ' .. last
  return ended
end

-- Remembers the run of e, of this family, which has ended as "said" (the notes of a release, or of
-- the script that found it): counts it in the fields c and n:WHAT, and writes its record to r:N. A
-- lock that was released unused had no run, and one that --at-least keeps was remembered when its
-- command ended.
local function remember(lock, family, e, said)
  local how, notes = ending_of(e, said)
  if how == 'unused' or how == 'refused' or has_note(e.rest, 'kept=1') then return end
  -- The time at which a dead one was found says nothing.
  local found_dead = string.find(said, '^expired') and e.deadline < now
  local at = found_dead and whole(e.deadline) or now_text
  local succeeded = how == 'ran' and has_note(notes, 'exit=0')
  local number_of_run = count_run(lock, e, succeeded and is_whole_work(e, family) and at or nil)
  local field, run = 'r:' .. whole(number_of_run % RUNS),
    at .. ' ' .. e.rest .. (string.sub(e.rest, -1) == ' ' and NOBODY or '')
    .. (how and ' ' or '') .. notes
  if succeeded or not how then
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run)
  else
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run,
      next_tally(lock, (how == 'ran' or how == 'killed') and 'failed' or how, at))
  end
end

-- The record of the run that began at that time and has succeeded; '' if RUNS have ended since, so
-- that it is forgotten.
local function successful_run(lock, began)
  local fields = {}
  for n = 0, RUNS - 1 do fields[n + 1] = 'r:' .. n end
  for _, run in ipairs(redis.call('HMGET', lock.key, unpack(fields))) do
    local since = run and string.match(run, '^%d+ %d+ %S+ (%d+) ')
    if since and number(since) == began and has_note(run, 'exit=0') then return run end
  end
  return ''
end

-- The record that tells why the owner has lost the lock: that of its own latest run, or else of the
-- nearest ancestor's, with which it lost it, if the lock was taken away from it; nil if that run
-- ended in another way, or is forgotten. The latest run is the one before number "ended".
local function revoked_run(lock, owner)
  local fields = { 'c' }
  for n = 0, RUNS - 1 do fields[n + 2] = 'r:' .. n end
  local found = redis.call('HMGET', lock.key, unpack(fields))
  local ended = number(string.match(found[1] or '', '^%d+')) or 0
  local path = lineage(owner)
  for i = #path, 1, -1 do
    for n = 1, RUNS do
      local run = found[(ended - n) % RUNS + 2]
      if run and string.find(run, ' ' .. path[i] .. ' ', 1, true) then
        return has_note(run, 'revoked=1') and run or nil
      end
    end
  end
end
