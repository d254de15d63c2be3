-- The usual acquisition: no holder is in the way, and no client waits.
--- @include "acquire/request"
--- @include "slots"
--- @include "fence"
--- @include "member"

-- Returns the fence of a new holder of the lock, which is number i of the request: the one that a
-- quorum has settled on, or else a new one; and then the last fence that the lock has issued. Both
-- are texts. Raises lock.fence to the latter, which the caller writes.
local function new_fence(lock, i)
  local settled = request.settled and number(request.settled[i])
  if not settled then
    local fence = next_fence(lock, request.proposal)
    return fence, fence
  end
  lock.fence = math.max(lock.fence, settled)
  return whole(settled), whole(lock.fence)
end

-- Whether the caller can have the lock without a second look: no holder is in the way, no client
-- waits, not even the caller, neither a limit nor a pause is stored, neither the caller nor an
-- ancestor of it holds the lock, and no holder that would share it may be dead. If it is false, the
-- whole acquisition decides.
local function is_open(lock)
  local held, mode = lock.held, request.mode
  if lock.own_place or lock.stored_limit or lock.paused then return false end
  for i = FAMILIES + 1, FAMILIES + #lock.path do -- families of the caller and its ancestors
    if lock.loaded[i] then return false end
  end
  if lock.queue.first <= lock.queue.last then return false end
  if not held then return true end
  if mode == 'x' or held.mode ~= mode or held.limit ~= request.limit then return false end
  return (mode == 's' or held.count < request.limit) and not is_in_doubt(held)
end

-- Grants all the locks, if that takes no more than to write it down, and returns the answer;
-- otherwise does nothing and returns nil. It is tried before check_conditions(), if that would have
-- nothing to check, and once more behind it: then "checked" is set.
local function quick_grant(checked)
  -- Options that need a look at other locks or waiters; a waiter of --latest may be superseded.
  local has_options = args.places or args.queue_only or args.mirror or request.take or args.latest
  local lacks_limit = request.mode == 'l' and request.limit == 0
  if has_options or lacks_limit or grace > 0 or done then return nil end
  if not checked and (args.epoch or args.unless_done or globs) then return nil end
  for _, lock in ipairs(locks) do
    if not is_open(lock) or not checked and lock.barred ~= '' then return nil end
  end
  local owner, mode, lease = args.owner, request.mode, request.lease
  local fences, slots = {}, {}
  local till_and_lease = whole(now + lease) .. ' ' .. args.lease .. ' '
  -- In this order a full server refuses the newcomer, and a client without the right to expire keys
  -- holds nothing.
  for i, lock in ipairs(locks) do
    local fence, last = new_fence(lock, i)
    fences[i] = fence
    make_key(lock)
    redis.call('HSET', lock.key, 'k', lock.kind, 'f', last,
      'a', whole((number(lock.acquired) or 0) + 1))
    keep_key(lock, lease)
  end
  for i, lock in ipairs(locks) do
    -- The field s, as state_text() would write it.
    local held = lock.held
    local state = mode .. ' ' .. whole(request.limit) .. ' 1 ' .. till_and_lease .. owner
    if held then
      held.count = held.count + 1
      held.earliest = math.min(held.earliest, now + lease)
      held.longest = math.max(held.longest, lease)
      state = state_text(held)
    end
    slots[i] = mode == 'l' and take_slot(lock) or 0
    local entry = till_and_lease .. fences[i] .. ' ' .. owner .. ' ' .. whole(request.since) .. ' '
      .. mode .. ' ' .. whole(slots[i]) .. ' ' .. request.who
    redis.call('HSET', lock.key, 's', state, 'h:' .. owner, entry)
  end
  return member_answer({ 'GRANTED', now, fences, slots }, locks)
end
