-- The memory that a lock has of its runs. It is for people: if the server has no room for it, the
-- lock works as well.
--- @include "lock"

local RUNS = 20 -- that a lock remembers

-- The field n:WHAT and its new text, with one more, at that time.
local function next_tally(lock, what, at)
  local count = string.match(redis.call('HGET', lock.key, 'n:' .. what) or '', '^%d+')
  return 'n:' .. what, whole((tonumber(count) or 0) + 1) .. ' ' .. at
end

-- Remembers the run of e, of this family, which has ended as the notes say. A lock that was
-- released unused had no run, and one that --at-least keeps was remembered when its command ended.
-- Every release pays for this: a number that does not change stays text.
local function remember(lock, family, e, notes)
  local how = string.match(notes, '^%a+')
  if how == 'unused' or how == 'refused' or string.find(e.rest, ' kept=1', 1, true) then return end
  local ended, waited, began, last = string.match(lock.ran, '^(%d+) (%d+) (%d+) (%d+)$')
  if not last or #lock.ran > 64 then ended, waited, began, last = 0, 0, '0', '0' end
  -- The time at which a dead one was found says nothing.
  local at = how == 'expired' and e.deadline < now and whole(e.deadline) or now_text
  -- A holder that was asked to release has lost the lock to the one who asked.
  if (how == 'lost' or how == 'expired') and string.find(e.rest, ' asked=', 1, true) then
    how, notes = 'revoked', 'revoked=1' .. string.sub(notes, #how + 3)
  end
  -- A reservation ends with its time: nothing has died.
  if how == 'expired' and string.find(e.rest, ' reserved=1', 1, true) then how, notes = nil, '' end
  local succeeded = how == 'ran' and string.find(notes, ' exit=0', 1, true)
  local first = family.entries[1]
  -- A run that nests in another is a part of that one's work; a reservation has none.
  if succeeded and (family.name == e.owner or first.owner == family.name
    and string.find(first.rest, ' reserved=1', 1, true)
    and not string.find(e.owner, '.', #family.name + 2, true)) then
    local before = tonumber(began)
    -- If the clock was set back, the latest time is not the greatest.
    if before > now or before < e.since then began = e.since_text or whole(e.since) end
    last = at
  end
  if string.find(e.rest, ' waited=', 1, true) then
    waited = whole(waited + (string.match(e.rest, ' waited=(%d+)') or 0))
  end
  lock.ran = whole(ended + 1) .. ' ' .. waited .. ' ' .. began .. ' ' .. last
  local field, run = 'r:' .. whole(ended % RUNS),
    at .. ' ' .. e.rest .. (string.sub(e.rest, -1) == ' ' and '- - - - -' or '')
    .. (how and ' ' or '') .. notes
  if succeeded or not how then
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run)
  else
    redis.pcall('HSET', lock.key, 'c', lock.ran, field, run,
      next_tally(lock, (how == 'ran' or how == 'killed') and 'failed' or how, at))
  end
end

-- The record of the run that began at that time and has succeeded; '' if it is forgotten.
local function successful_run(lock, began)
  local fields = {}
  for n = 0, RUNS - 1 do fields[n + 1] = 'r:' .. n end
  for _, run in ipairs(redis.call('HMGET', lock.key, unpack(fields))) do
    local since = run and string.match(run, '^%d+ %d+ %S+ (%d+) ')
    if since and number(since) == began and string.find(run, ' exit=0', 1, true) then return run end
  end
  return ''
end

-- The latest run of the owner, or else of the nearest ancestor that has one, if the lock was taken
-- away from it; nil if it ended in another way, or is forgotten.
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
        return string.find(run, ' revoked=1', 1, true) and run or nil
      end
    end
  end
end
