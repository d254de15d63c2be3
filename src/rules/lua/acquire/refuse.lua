-- The answers of acquire.lua to a caller that is kept out.
--- @include "acquire/decide"

-- Why the caller must wait for the lock, in the words of describe_obstacle(): the holders, or, if
-- there are none in its way, the first in the queue.
local function describe_reason(lock, found)
  local first = not lock.turn.is_first and lock.turn.first
  if found or not first or not first.who then return describe_obstacle(found) end
  return 0, 0, record_for_others(first)
end

-- The answer CLOSED: no newcomer is let in. places: of the caller; '': it does not wait. waiting:
-- its position; of one that does not wait, how many do. kept: as in queue_up().
local function describe_closed(decision, places, waiting, kept)
  local pause = locks[decision.which].paused
  local closed = { 'CLOSED', now, pause and pause.till - now or 0, places, waiting,
                   dropped and 1 or 0, decision.which, pause and pause.text or '' }
  return with_far_ttl(closed, kept, 9)
end

-- The answer to a caller that does not wait; counts it as refused, unless another request of the
-- same caller says the same: to the other members of a quorum, or about the other keys.
local function refuse(decision)
  local lock, found = locks[decision.which], decision.found
  local waiting = lock.queue.last - lock.queue.first + 1
  if grace > 0 and not found then return { 'GRACE', now, grace, '', waiting, 0 } end
  if not args.member and not request.is_part then count_refusal(lock) end
  if found and found.closed then return describe_closed(decision, '', waiting) end
  local held = { 'HELD', now, waiting, decision.which, describe_reason(lock, found) }
  held[8] = lock.stored_limit -- behind the three of describe_reason()
  return member_answer(held)
end

-- The caller's position in the queue of the lock that it is told of; if it takes some of several
-- locks, the best one of those that it does not get. If nothing keeps it out, it comes first.
local function best_position(decision)
  if decision.free then return 1 end
  local best = position_in(locks[decision.which])
  for _, each in ipairs(request.take and locks or {}) do
    if each.obstacle or not each.turn.next then best = math.min(best, position_in(each)) end
  end
  return best
end

-- In how many ms the first lock for which it comes first may be free, as far as that is known.
local function ms_until_free()
  local till = math.huge
  for _, each in ipairs(locks) do
    local what = (each.turn.is_first or not each.turn.first) and each.obstacle
    if what and not what.closed then till = math.min(till, what.till) end
  end
  return till < math.huge and math.max(till - now, 0) or 0
end

-- Gives the caller a place in the queue of each lock, or keeps that, and calls those that it does
-- not keep out: whoever was behind it where it has left its places, and the first where it could go
-- itself but for its other keys. Returns the answer. kept: for how long the place of a caller that
-- is far from its turn is kept, ms.
local function queue_up(decision)
  for _, each in ipairs(locks) do
    make_key(each)
    if each.paused and each.paused.unmarked then
      redis.call('HSET', each.key, 'k', each.kind, 'p', each.paused.text)
    end
    if not each.queue.mine then join_queue(each) end
  end
  local places, kept = {}, nil
  for i, each in ipairs(locks) do
    kept = renew_place(each) or kept -- only one lock may have a far waiter
    places[i] = each.place .. (each.listed and '/' .. whole(each.listed) or '')
    local passed = not each.obstacle and not each.turn.next
    if left then
      wake(each, each.parent, each.family, 'only_notify')
    elseif passed then -- the first one knows if it has called within the last second
      wake(each, each.parent, each.family, 'only_notify', now + request.place_ttl - 1000)
    end
  end
  places = table.concat(places, ' ')
  local lock, found, anew = locks[decision.which], decision.found, dropped and 1 or 0
  if grace > 0 and not found then
    return { 'GRACE', now, grace, places, best_position(decision), anew }
  end
  if found and found.closed then
    return describe_closed(decision, places, best_position(decision), kept)
  end
  local queued = { 'QUEUED', now, places, best_position(decision), anew, decision.which,
                   describe_reason(lock, found) }
  if request.take then queued[8] = ms_until_free() end -- 7 to 9 are those of describe_reason()
  queued[10] = lock.stored_limit
  return with_far_ttl(queued, kept, 11)
end
