-- Conditions that acquire.lua checks before it looks at the locks.
--- @include "request"
--- @include "entries"
--- @include "globs"
--- @include "epoch"

-- The limit of the lock, where the request is for a semaphore.
local function limit_of(lock)
  return args.mode == 'l' and lock.stored or args.limit
end

-- Finds the lock whose latest successful run began longest ago, if all of them began recently
-- enough. A clock that was set back does not make that last longer.
local function find_done()
  local recent, done = tonumber(args.unless_done), nil
  for i, lock in ipairs(locks) do
    local counted = redis.call('HGET', lock.key, 'c')
    local began = number(counted and string.match(counted, '^%d+ %d+ (%d+)')) or 0
    local ago = math.max(now - began, 0)
    if began == 0 or ago >= recent or began - now >= recent then return nil end
    if not done or ago > done.ago then done = { which = i, ago = ago, began = began } end
  end
  return done
end

-- Returns the refusal, if there is one. args.done: a recent success makes the request needless.
-- args.grace: for how many ms nothing new is granted.
local function check_conditions()
  for i, lock in ipairs(locks) do
    local sound, refusal = read_families(lock, i)
    if not sound then return refusal end
    if args.globs and lock.fence == 0 and not lock.paused then
      lock.paused = glob_pause(args.globs, lock.key)
      lock.unmarked = lock.paused
    end
    if lock.barred ~= '' and is_barred(lock) then return { 'BARRED', now } end
  end
  args.done = args.unless_done and find_done()
  if args.epoch then args.grace = grace_left(args.epoch, args.lease) end
end
