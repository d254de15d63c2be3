-- The answers of acquire.lua to a caller that is kept out.
--- @include "acquire/decide"

-- Returns the three elements by which an answer says why the caller must wait for the lock: how
-- many holders are in its way, the ms until the first of them may be dead, and the oldest as text;
-- or, if no holder is, 0, 0 and the record of the waiter that comes before it. found: the obstacle;
-- nil: none.
local function describe_reason(lock, found)
  local first = not lock.turn.is_first and lock.turn.first
  local is_known = first and first.who
  if not found and is_known then return 0, 0, record_for_others(first) end
  return describe_obstacle(found)
end

-- The answer CLOSED: no newcomer is let in. decision: of decide(). places: the caller's, as text;
-- '': it does not wait. waiting: its position; or, of one that does not wait, how many do. kept:
-- for how many ms the place of a far waiter is kept; nil: it is not far.
local function describe_closed(decision, places, waiting, kept)
  local pause = locks[decision.which].paused
  local closed = { 'CLOSED', now, pause and pause.till - now or 0, places, waiting,
                   dropped and 1 or 0, decision.which, pause and pause.text or '' }
  return with_far_ttl(closed, kept, 9)
end

-- Refuses a caller that does not wait: returns the answer, HELD, CLOSED or GRACE, and counts it as
-- refused. It is not counted in a quorum, or where the request is about one of several keys: there
-- the caller sends several requests, and may get what it wants by another one. decision: of
-- decide().
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

-- The position that a waiting caller is told, 1: it is first. It is that in the queue of the lock
-- which the decision is about; or, if the caller takes only some of the locks, the best one in the
-- queues of those that it does not get. If nothing keeps it out, it is 1.
local function best_position(decision)
  if decision.free then return 1 end
  local best = position_in(locks[decision.which])
  for _, each in ipairs(request.take and locks or {}) do
    local is_free = not each.obstacle and each.turn.next
    if not is_free then best = math.min(best, position_in(each)) end
  end
  return best
end

-- In how many ms the first of the locks may be free for which the caller comes first; 0: not known.
local function ms_until_free()
  local till = math.huge
  for _, each in ipairs(locks) do
    local comes_first = each.turn.is_first or not each.turn.first
    local found = comes_first and each.obstacle
    if found and not found.closed then till = math.min(till, found.till) end
  end
  return till < math.huge and math.max(till - now, 0) or 0
end

-- Gives the caller a place in the queue of each lock, or keeps that, and returns the answer:
-- QUEUED, CLOSED or GRACE. Calls other waiters that it does not keep out: where it has left its
-- former places ("left"), those that came behind it; and where it could go itself but for its other
-- keys, the first. decision: of decide().
local function queue_up(decision)
  for _, each in ipairs(locks) do
    make_key(each)
    if each.paused and each.paused.unmarked then
      redis.call('HSET', each.key, 'k', each.kind, 'p', each.paused.text)
    end
    if not each.queue.mine then join_queue(each) end
  end
  local places, kept = {}, nil -- kept: for how many ms a far place is
  for i, each in ipairs(locks) do
    kept = renew_place(each) or kept -- only one lock may have a far waiter
    places[i] = each.own_place .. (each.listed and '/' .. whole(each.listed) or '')
    local others_can_go = not each.obstacle and not each.turn.next
    if left then
      wake(each, each.parent, each.family, 'only_notify')
    elseif others_can_go then -- the first one knows if it has called within the last second
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
