-- Conditions that acquire.lua checks before it looks at the locks.
--- @include "acquire/request"
--- @include "entries"
--- @include "globs"
--- @include "epoch"

-- The limit that counts for the request: a semaphore's stored one overrides it. 0: not a semaphore,
-- or none is known.
local function limit_of(lock)
  return request.mode == 'l' and lock.stored_limit or request.limit
end

-- For --unless-done: the lock whose latest successful run began longest ago ("which", "ago", and
-- "began"), if those of all locks began recently enough; nil if not. One that seems to have begun
-- in the future, as the clock was set back, is recent for no longer than any other.
local function find_done()
  local recent, found = tonumber(args.unless_done), nil
  for i, lock in ipairs(locks) do
    local counted = redis.call('HGET', lock.key, 'c')
    local began = number(counted and string.match(counted, '^%d+ %d+ (%d+)')) or 0
    local ago = math.max(now - began, 0)
    if began == 0 or ago >= recent or began - now >= recent then return nil end
    if not found or ago > found.ago then found = { which = i, ago = ago, began = began } end
  end
  return found
end

-- Reads the families of all locks, and the pauses of GLOBs into those that were never acquired
-- (lock.paused). Returns the refusal, if there is one; otherwise sets "done" and "grace".
local function check_conditions()
  for i, lock in ipairs(locks) do
    local sound, refusal = read_families(lock, i)
    if not sound then return refusal end
    if globs and lock.fence == 0 and not lock.paused then
      lock.paused = glob_pause(globs, lock.key)
      if lock.paused then lock.paused.unmarked = true end
    end
    if lock.barred ~= '' and is_barred(lock) then return { 'BARRED', now } end
  end
  done = args.unless_done and find_done()
  if args.epoch then grace = grace_left(args.epoch, request.lease) end
end
