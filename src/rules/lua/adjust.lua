-- include database.lua
-- include lock.lua
-- include slots.lua
-- include memory.lua
-- include waiter.lua
-- include queue.lua
-- include holders.lua
-- include globs.lua

-- What somebody decides about a lock without holding it.
-- ARGV: 'limit', how many may hold it from now on, or '' to forget that;
--       'pause', where the pauses of GLOBs are ('': nowhere), for how many ms nobody is let in, and
--       who says so;   'resume', where they are;   'globs', where they are: does what they say
-- {'ADJUSTED', now}   {'NONE', now}: there is nothing to forget, or to do
-- {'MISFIT', now, what, 1}
local lock, refusal = load_lock(1, nil, 'po', 'k')
if not lock then return refusal end

-- As many hold it as do; no more come before there is room.
local function set_limit(limit)
  refresh(lock)
  if lock.held and lock.held.mode ~= 'l' then return { 'MISFIT', now, 'lock', 1 } end
  lock.stored, lock.limit = limit, limit
  keep(lock, 0)
  redis.call('HSET', lock.key, 'k', KIND, 'l', whole(limit))
  if lock.held then
    lock.held.limit = limit
    redis.call('HSET', lock.key, 's', state_text(lock.held))
  end
  keep(lock, 0)
  wake(lock)
  return { 'ADJUSTED', now }
end

-- What is stored counts no more. Those who hold the lock go on under the limit that they have.
local function forget_limit()
  if not lock.stored then return { 'NONE', now } end
  lock.stored = nil
  keep(lock, 0)
  redis.call('HDEL', lock.key, 'l')
  wake(lock)
  return { 'ADJUSTED', now }
end

-- The notes behind the five words of whoever has made it.
local NOTES = '^%d+ %S+ %d+ %S+ %S+ %S+ %S+ %S+ %S+( .*)$'

-- The pause that somebody has made for this lock alone.
local function own_pause()
  local notes = lock.paused and string.match(lock.paused.text, NOTES) or ''
  if not string.find(notes, ' glob=', 1, true) then return lock.paused end
  return lock.also and read_pause(lock.also) or nil
end

-- Of its own pause and those of GLOBs the one that ends last, and then its own, if another lasts
-- longer.
local function choose(own)
  local told = ARGV[2] ~= '' and redis.call('HMGET', ARGV[2], 'p')[1]
  local last = glob_pause(told or nil, lock.key)
  if own and not (last and last.till > own.till) then return own end
  return last, own
end

-- The one that counts is in p, its own besides in po.
local function set_pause(last, own)
  lock.paused = last
  keep(lock, 0)
  if not own then redis.call('HDEL', lock.key, 'po') end
  if last then
    redis.call('HSET', lock.key, 'k', KIND, 'p', last.text)
    if own then redis.call('HSET', lock.key, 'po', own.text) end
    keep(lock, 0)
  else
    redis.call('HDEL', lock.key, 'p')
    wake(lock)
  end
  return { 'ADJUSTED', now }
end

-- In place of a pause of its own that there is.
local function pause(ms, who)
  local till = now + ms
  local own = { till = till, text = whole(till) .. ' pause ' .. whole(now) .. ' x ' .. who }
  return set_pause(choose(own))
end

local function resume()
  if not own_pause() then return { 'NONE', now } end
  return set_pause(choose(nil))
end

-- A lock that is not there any more is none to be marked.
local function mark()
  local last, own = choose(own_pause())
  local same = (last and last.text) == (lock.paused and lock.paused.text)
  if same or not lock.besides then return { 'NONE', now } end
  return set_pause(last, own)
end

if ARGV[1] == 'pause' then return pause(tonumber(ARGV[3]), ARGV[4]) end
if ARGV[1] == 'resume' then return resume() end
if ARGV[1] == 'globs' then return mark() end
if ARGV[2] == '' then return forget_limit() end
return set_limit(tonumber(ARGV[2]))
