-- The answers of acquire.lua to a caller that is kept out.
--- @include "decide"

-- The obstacle, in the words of a refusal: the holders, or else the first in the queue.
local function describe_reason(lock, found)
  local first = not lock.is_first and lock.first
  if found or not first or not first.who then return describe(found) end
  return 0, 0, show_waiter(first)
end

local function describe_closed(decision, places, waiting)
  local pause = locks[decision.which].paused
  local closed = { 'CLOSED', now, pause and pause.till - now or 0, places, waiting,
                   args.dropped and 1 or 0, decision.which, pause and pause.text or '' }
  return tell_kept(closed, locks[1], 9)
end

-- The answer to a caller that does not wait.
local function refuse(decision)
  local lock, found = locks[decision.which], decision.found
  local waiting = lock.queue.last - lock.queue.first + 1
  if args.grace > 0 and not found then return { 'GRACE', now, args.grace, '', waiting, 0 } end
  if not args.member and not args.is_part then count_refusal(lock) end
  if found and found.closed then return describe_closed(decision, '', waiting) end
  local held = { 'HELD', now, waiting, decision.which, describe_reason(lock, found) }
  held[8] = lock.stored
  return member_answer(held)
end

-- Its position in the queue; of several of which it takes some, the best one.
local function position(decision)
  if decision.free then return 1 end
  local best = position_in(locks[decision.which])
  for _, each in ipairs(args.take and locks or {}) do
    if each.obstacle or not each.next then best = math.min(best, position_in(each)) end
  end
  return best
end

-- In how many ms the first lock for which it comes first may be free, as far as that is known.
local function soonest()
  local till = math.huge
  for _, each in ipairs(locks) do
    local what = (each.is_first or not each.first) and each.obstacle
    if what and not what.closed then till = math.min(till, what.till) end
  end
  return till < math.huge and math.max(till - now, 0) or 0
end

-- Gives it a place in the queue of each lock, or keeps that. Returns the answer.
local function queue(decision)
  for _, each in ipairs(locks) do
    if each.unmarked then redis.call('HSET', each.key, 'k', each.kind, 'p', each.paused.text) end
    if not each.queue.mine then join_queue(each) end
  end
  local places = {}
  for i, each in ipairs(locks) do
    sign_on(each)
    places[i] = each.place .. (each.listed and '/' .. whole(each.listed) or '')
    local passed = not each.obstacle and not each.next
    if args.left then
      wake(each, each.parent, each.family, true)
    elseif passed then
      wake(each, each.parent, each.family, true, now + args.place_ttl - 1000)
    end
  end
  places = table.concat(places, ' ')
  local lock, found, dropped = locks[decision.which], decision.found, args.dropped and 1 or 0
  if args.grace > 0 and not found then
    return { 'GRACE', now, args.grace, places, position(decision), dropped }
  end
  if found and found.closed then return describe_closed(decision, places, position(decision)) end
  local queued = { 'QUEUED', now, places, position(decision), dropped, decision.which,
                   describe_reason(lock, found) }
  if args.take then queued[8] = soonest() end
  queued[10] = lock.stored
  return tell_kept(queued, lock, 11)
end
