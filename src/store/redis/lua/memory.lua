-- What a lock remembers of those who have held it. It is for people: where the server has no room
-- for it, the lock works as well.

-- One more of what n:WHAT counts, and when: as it is to be written.
local function tally(lock, what, at)
  local count = string.match(redis.call('HGET', lock.key, 'n:' .. what) or '', '^%d+')
  return 'n:' .. what, whole((tonumber(count) or 0) + 1) .. ' ' .. at
end

-- The run of e, of this family, has ended as the notes say. What was given back unused was no run,
-- and what --at-least keeps has been remembered when its command ended.
local function remember(lock, family, e, notes)
  local how = string.match(notes, '^%a+')
  if how == 'unused' or how == 'refused' or string.find(e.rest, ' kept=1', 1, true) then return end
  local text = lock.counted or redis.call('HGET', lock.key, 'c') or ''
  local ended, waited, began, last = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
  if not last then ended, waited, began, last = 0, 0, 0, 0 end
  -- When a dead one was found says nothing.
  local at = whole(how == 'expired' and math.min(now, e.deadline) or now)
  local succeeded = how == 'ran' and string.find(notes, ' exit=0', 1, true)
  -- Who nests in a holder does a part of that one's work.
  if succeeded and family.name == e.owner then
    -- A clock that was set back makes the latest one not the greatest.
    began, last = tonumber(began) > now and e.since or math.max(began, e.since), at
  end
  local some = string.match(e.rest, ' waited=(%d+)')
  if some then waited = waited + some end
  lock.counted = string.format('%.0f %.0f %.0f %s', ended + 1, waited, began, last)
  local field, run = 'r:' .. ended % 20,
    at .. ' ' .. e.rest .. (string.sub(e.rest, -1) == ' ' and '- - - - -' or '')
    .. (how and ' ' or '') .. notes
  if succeeded or not how then
    redis.pcall('HSET', lock.key, 'c', lock.counted, field, run)
  else
    redis.pcall('HSET', lock.key, 'c', lock.counted, field, run,
      tally(lock, how == 'ran' and 'failed' or how, at))
  end
end

-- Somebody wanted it and goes away without it. Where nobody has ever had it, there may be no key.
local function count_refusal(lock)
  if lock.fence == 0 then return end
  redis.pcall('HSET', lock.key, tally(lock, 'refused', whole(now)))
end
