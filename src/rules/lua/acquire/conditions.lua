-- Conditions that acquire.lua checks before it looks at the locks.
--- @include "acquire/request"
--- @include "entries"
--- @include "globs"
--- @include "epoch"

-- How many may hold the lock at once, for this request: the stored limit of a semaphore, or else
-- the one that the request names. 0: the request is not for a semaphore, or no limit is known.
local function limit_of(lock)
  return request.mode == 'l' and lock.stored_limit or request.limit
end

-- For --unless-done: returns nil if the request is needed, as a lock has no successful run that
-- began less than args.unless_done ms ago. If all have one, returns the lock whose run began
-- longest ago: "which", its number; "ago", how many ms; and "began", when. A run that seems to have
-- begun in the future, as the clock was set back, is recent for no longer than any other.
local function find_done()
  local recent, found = tonumber(args.unless_done), nil
  for i, lock in ipairs(locks) do
    local counted = redis.call('HGET', lock.key, 'c')
    local began = number(counted and string.match(counted, '^%d+ %d+ (%d+)')) or 0
    local ago = math.max(now - began, 0)
    local is_recent = began > 0 and ago < recent and began - now < recent
    if not is_recent then return nil end
    if not found or ago > found.ago then found = { which = i, ago = ago, began = began } end
  end
  return found
end

-- Reads what quick_grant() does not need to know of usual locks: the families of all locks; the
-- pauses of GLOBs, for locks that were never acquired (lock.paused); whether the request is barred,
-- or needless ("done"); and for how long nothing is granted ("grace"). Returns the refusal; nil:
-- there is none, and "done" and "grace" are set.
local function check_conditions()
  for i, lock in ipairs(locks) do
    local sound, refusal = read_families(lock, i)
    if not sound then return refusal end
    local was_acquired = lock.fence > 0
    if globs and not was_acquired and not lock.paused then
      lock.paused = glob_pause(globs, lock.key)
      if lock.paused then lock.paused.unmarked = true end
    end
    if lock.barred ~= '' and is_barred(lock) then return { 'BARRED', now } end
  end
  done = args.unless_done and find_done()
  if args.epoch then grace = grace_left(args.epoch, request.lease) end
end
