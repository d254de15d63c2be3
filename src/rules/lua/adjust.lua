-- Changes what is decided about a lock without holding it.
--
-- Key: the lock.
-- Arguments (those in brackets may be missing):
--   what       limit, pause, resume, or globs: apply the pauses of GLOBs and the minimum version
--   [not_after]   server's clock in ms: do nothing later than that
--   [limit]    of limit: how many may hold it from now on; missing: forget that
--   [pauses]   of all others: the key of the pauses of GLOBs (globs.lua)
--   [ms, who]  of pause: for how long no newcomer is let in, and the WHO of the one who decides
-- Answers:
--   {'ADJUSTED', now}   {'NONE', now}: there is nothing to forget, or to do
--   {'MISFIT', now, what, 1}   {'STALE', now}
--- @include "arguments"
--- @include "holders"
--- @include "globs"
--- @include "minimum"

if is_late(now) then return { 'STALE', now } end
local lock, refusal = load_families(1, nil, 'po')
if not lock then return refusal end

-- Stores the limit, and calls waiters that can go now. The present holders stay, even if they are
-- more; no newcomer gets in before there is room. The key is kept before the change and after, for
-- the reason that keep_key() has. Returns the answer.
local function set_limit(limit)
  refresh(lock)
  if lock.held and lock.held.mode ~= 'l' then return { 'MISFIT', now, 'lock', 1 } end
  lock.stored_limit, lock.limit = limit, limit
  keep_key(lock, 0)
  redis.call('HSET', lock.key, 'k', lock.kind, 'l', whole(limit))
  if lock.held then
    lock.held.limit = limit
    redis.call('HSET', lock.key, 's', state_text(lock.held))
  end
  keep_key(lock, 0)
  wake(lock)
  return { 'ADJUSTED', now }
end

-- Removes the stored limit, and calls waiters that can go now; the present holders continue under
-- the limit that they have. keep_key() goes by lock.stored_limit: the key lives for a week from now
-- on, not for a year. Returns the answer.
local function forget_limit()
  if not lock.stored_limit then return { 'NONE', now } end
  lock.stored_limit = nil
  keep_key(lock, 0)
  redis.call('HDEL', lock.key, 'l')
  wake(lock)
  return { 'ADJUSTED', now }
end

-- A pattern for a pause, DEADLINE pause SINCE x WHO, that finds the notes behind WHO's five words.
local NOTES = '^%d+ %S+ %d+ %S+ %S+ %S+ %S+ %S+ %S+( .*)$'

-- The pause that was made for this lock only, as read_pause() returns it; nil if there is none. It
-- is in the field p; or, where that has the pause of a GLOB, in the field po (lock.extra).
local function own_pause()
  local notes = lock.paused and string.match(lock.paused.text, NOTES) or ''
  if not has_note(notes, 'glob=') then return lock.paused end
  return lock.extra and read_pause(lock.extra) or nil
end

-- Returns the pause that counts, which is the one that ends last of the lock's own pause and those
-- of GLOBs (nil: there is none); and then the lock's own, if that is another one. own: the lock's
-- own pause; nil: it has none.
local function choose_pause(own)
  local pauses_of_globs = args.pauses and redis.call('HMGET', args.pauses, 'p')[1]
  local last = glob_pause(pauses_of_globs, lock.key)
  if own and not (last and last.till > own.till) then return own end
  return last, own
end

-- Sets lock.paused to the pause that counts, "last", and writes it to the field p; and to po the
-- lock's own one, if that is another (choose_pause() returns both). If there is no pause, calls the
-- next waiter. The key is kept before and after, as keep_key() says. Returns the answer.
local function set_pause(last, own)
  lock.paused = last
  keep_key(lock, 0)
  if not own then redis.call('HDEL', lock.key, 'po') end
  if last then
    redis.call('HSET', lock.key, 'k', lock.kind, 'p', last.text)
    if own then redis.call('HSET', lock.key, 'po', own.text) end
    keep_key(lock, 0)
  else
    redis.call('HDEL', lock.key, 'p')
    wake(lock)
  end
  return { 'ADJUSTED', now }
end

-- Pauses the lock itself for so many ms, in place of such a pause before. who: the WHO of the one
-- who pauses it. The record is that of a waiter (q:N in lock.lua), with the word "pause" for the
-- owner, and always the mode x. Returns the answer.
local function pause(ms, who)
  local till = now + ms
  local own = { till = till, text = whole(till) .. ' pause ' .. whole(now) .. ' x ' .. who }
  return set_pause(choose_pause(own))
end

-- Ends the pause of this lock only; one of a GLOB that holds for it stays. Returns the answer.
local function resume()
  if not own_pause() then return { 'NONE', now } end
  return set_pause(choose_pause(nil))
end

-- Writes into the lock what the hash of the pauses of GLOBs says of it now: a pause, and the
-- minimum version. A lock without a key gets nothing, as its first request looks there itself.
-- Returns the answer.
local function apply_globs()
  local kind_before = lock.loaded[1] -- the field k; false: there is no key
  if not kind_before then return { 'NONE', now } end
  local last, own = choose_pause(own_pause())
  local minimum = args.pauses and redis.call('HMGET', args.pauses, 'v')[1] or nil
  set_minimum(lock, minimum)
  local has_another_kind = lock.kind ~= kind_before
  if has_another_kind then redis.call('HSET', lock.key, 'k', lock.kind) end
  local pause_text, text_before = last and last.text, lock.paused and lock.paused.text
  if pause_text ~= text_before then return set_pause(last, own) end
  return { has_another_kind and 'ADJUSTED' or 'NONE', now }
end

if args.what == 'pause' then return pause(tonumber(args.ms), args.who) end
if args.what == 'resume' then return resume() end
if args.what == 'globs' then return apply_globs() end
if not args.limit then return forget_limit() end
return set_limit(tonumber(args.limit))
