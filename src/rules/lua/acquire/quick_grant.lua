-- The usual acquisition: no holder is in the way, and no client waits.
--- @include "acquire/request"
--- @include "slots"
--- @include "fence"
--- @include "member"

-- The fence of a new holder of the ith lock, which is what a quorum has settled on, if it has; and
-- the last fence that was issued: both as text. Raises lock.fence, which the caller writes.
local function new_fence(lock, i)
  local settled = request.settled and number(request.settled[i])
  if not settled then
    local fence = next_fence(lock, request.proposal)
    return fence, fence
  end
  lock.fence = math.max(lock.fence, settled)
  return whole(settled), whole(lock.fence)
end

-- Whether no holder is in the way, no client waits, and no holder that shares it may be dead. What
-- would need a second look makes it false: then the whole acquisition decides.
local function is_open(lock)
  local h, mode = lock.held, request.mode
  if lock.place or lock.stored_limit or lock.paused then return false end
  -- Neither the caller nor an ancestor of it holds the lock.
  for i = FAMILIES + 1, FAMILIES + #lock.path do
    if lock.loaded[i] then return false end
  end
  if lock.queue.first <= lock.queue.last then return false end
  return not h
    or mode ~= 'x' and h.mode == mode and h.limit == request.limit
    and (mode == 's' or h.count < request.limit) and not is_in_doubt(h)
end

-- Grants all the locks; nil if that takes more than to write it down. It is tried before
-- check_conditions(), if that would have nothing to check, and once more behind it: then "checked"
-- is set.
local function quick_grant(checked)
  -- A waiter that may have been superseded is not let in unasked.
  if args.places or args.queue_only or grace > 0 or args.mirror or done or request.take
    or args.latest or request.mode == 'l' and request.limit == 0 then
    return nil
  end
  if not checked and (args.epoch or args.unless_done or globs) then return nil end
  for _, lock in ipairs(locks) do
    if not is_open(lock) or not checked and lock.barred ~= '' then return nil end
  end
  local owner, mode, lease = args.owner, request.mode, request.lease
  local fences, slots, till = {}, {}, whole(now + lease) .. ' ' .. args.lease .. ' '
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
    local h, state = lock.held, mode .. ' ' .. whole(request.limit) .. ' 1 ' .. till .. owner
    if h then
      h.count = h.count + 1
      h.earliest, h.longest = math.min(h.earliest, now + lease), math.max(h.longest, lease)
      state = state_text(h)
    end
    slots[i] = mode == 'l' and take_slot(lock) or 0
    redis.call('HSET', lock.key, 's', state, 'h:' .. owner,
      till .. fences[i] .. ' ' .. owner .. ' ' .. now_text .. ' ' .. mode .. ' '
      .. whole(slots[i]) .. ' ' .. request.who)
  end
  return member_answer({ 'GRANTED', now, fences, slots }, locks)
end
