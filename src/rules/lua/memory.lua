-- What a lock remembers of those who have held it. It is for people: where the server has no room
-- for it, the lock works as well.

-- One more of what n:WHAT counts, and when: as it is to be written.
local function tally(lock, what, at)
  local count = string.match(redis.call('HGET', lock.key, 'n:' .. what) or '', '^%d+')
  return 'n:' .. what, whole((tonumber(count) or 0) + 1) .. ' ' .. at
end

-- The run of e, of this family, has ended as the notes say. What was given back unused was no run,
-- and what --at-least keeps has been remembered when its command ended. Every release pays for
-- this: numbers that stay as they are stay text, and a pattern is looked for where it is alone.
local function remember(lock, family, e, notes)
  local how = string.match(notes, '^%a+')
  if how == 'unused' or how == 'refused' or string.find(e.rest, ' kept=1', 1, true) then return end
  local text = lock.counted or redis.call('HGET', lock.key, 'c') or ''
  local ended, waited, began, last = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
  if not last or #text > 64 then ended, waited, began, last = 0, 0, '0', '0' end
  -- When a dead one was found says nothing.
  local at = how == 'expired' and e.deadline < now and whole(e.deadline) or now_text
  -- Who was asked to give it back has lost it to whoever asked.
  if (how == 'lost' or how == 'expired') and string.find(e.rest, ' asked=', 1, true) then
    how, notes = 'revoked', 'revoked=1' .. string.sub(notes, #how + 3)
  end
  local succeeded = how == 'ran' and string.find(notes, ' exit=0', 1, true)
  -- Who nests in a holder does a part of that one's work.
  if succeeded and family.name == e.owner then
    local before = tonumber(began)
    -- A clock that was set back makes the latest one not the greatest.
    if before > now or before < e.since then began = e.since_text or whole(e.since) end
    last = at
  end
  if string.find(e.rest, ' waited=', 1, true) then
    waited = whole(waited + (string.match(e.rest, ' waited=(%d+)') or 0))
  end
  lock.counted = ended + 1 .. ' ' .. waited .. ' ' .. began .. ' ' .. last
  local field, run = 'r:' .. ended % 20,
    at .. ' ' .. e.rest .. (string.byte(e.rest, -1) == 32 and '- - - - -' or '')
    .. (how and ' ' or '') .. notes
  if succeeded or not how then
    redis.pcall('HSET', lock.key, 'c', lock.counted, field, run)
  else
    redis.pcall('HSET', lock.key, 'c', lock.counted, field, run,
      tally(lock, (how == 'ran' or how == 'killed') and 'failed' or how, at))
  end
end

-- The record of the run that began at that time and has succeeded; '' if it is forgotten.
local function success(lock, began)
  local fields = {}
  for n = 0, 19 do fields[n + 1] = 'r:' .. n end
  for _, run in ipairs(redis.call('HMGET', lock.key, unpack(fields))) do
    local since = run and string.match(run, '^%d+ %d+ %S+ (%d+) ')
    if since and number(since) == began and string.find(run, ' exit=0', 1, true) then return run end
  end
  return ''
end

-- The latest run of the owner, or else of the nearest ancestor of which one is known, if somebody
-- has taken the lock from it; nil where it ended in another way, or is forgotten.
local function revocation(lock, owner)
  local fields = { 'c' }
  for n = 0, 19 do fields[n + 2] = 'r:' .. n end
  local found = redis.call('HMGET', lock.key, unpack(fields))
  local ended = number(string.match(found[1] or '', '^%d+')) or 0
  local path = lineage(owner)
  for i = #path, 1, -1 do
    for n = 1, 20 do
      local run = found[(ended - n) % 20 + 2]
      if run and string.find(run, ' ' .. path[i] .. ' ', 1, true) then
        return string.find(run, ' revoked=1', 1, true) and run or nil
      end
    end
  end
end
