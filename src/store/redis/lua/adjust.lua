-- include database.lua
-- include lock.lua
-- include slots.lua
-- include memory.lua
-- include queue.lua
-- include holders.lua

-- What somebody decides about a lock without holding it.
-- ARGV: 'limit', how many may hold it from now on, or '' to forget that;
--       'pause', for how many ms nobody is let in, and who says so;   'resume'
-- {'ADJUSTED', now}   {'NONE', now}: there is nothing to forget   {'MISFIT', now, what, 1}
local lock, refusal = load_lock(1)
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

-- What a field says counts no more. Those who hold the lock go on under the limit that they have.
local function forget(what, field)
  if not lock[what] then return { 'NONE', now } end
  lock[what] = nil
  keep(lock, 0)
  redis.call('HDEL', lock.key, field)
  wake(lock)
  return { 'ADJUSTED', now }
end

-- In place of a pause that there is.
local function pause(ms, who)
  local till = now + ms
  local text = whole(till) .. ' pause ' .. whole(now) .. ' x ' .. who
  lock.paused = { till = till, text = text }
  keep(lock, 0)
  redis.call('HSET', lock.key, 'k', KIND, 'p', text)
  keep(lock, 0)
  return { 'ADJUSTED', now }
end

if ARGV[1] == 'pause' then return pause(tonumber(ARGV[2]), ARGV[3]) end
if ARGV[1] == 'resume' then return forget('paused', 'p') end
if ARGV[2] == '' then return forget('stored', 'l') end
return set_limit(tonumber(ARGV[2]))
