-- The request of acquire.lua, and the locks that it is about.
--- @include "attempts"
--- @include "minimum"

-- parse_request() and load_request() make these. Of the request, lease, mode, limit, place_ttl and
-- far_ttl are the arguments of acquire.lua, with 0 for one that is missing (mode: 'x'); then
--   who          WHO with the notes that repeat options
--   since        from when on it holds the locks that are granted: now, or earlier in a quorum
--   take, needed   how many of the locks it takes (nil: all), and so how many must be free
--   is_part      the caller asks for one of several keys after the other, and this is one of them
--   proposal, settled   of a quorum: a fence that all its servers may take, and, as text, the fence
--                of each lock that it has settled on; none yet: an empty list
local request, locks = nil, {}

-- The pauses of GLOBs, if one of the locks was never acquired. Then what check_conditions() finds:
-- for how many ms nothing new is granted, and a recent success that makes the request needless.
local globs, grace, done = nil, 0, nil

-- Makes the table "request" (above) out of the arguments of the call, with what it leaves out
-- filled in. Returns the refusal if the call has come too late; nil: it has not.
local function parse_request()
  if is_late(now) then return { 'STALE', now } end
  local who = with_attempt(args.who or '')
  -- This call is about one of several keys, which are asked for one by one.
  local is_part = args.take and LOCKS == 1
  local take = not is_part and args.take and tonumber(string.match(args.take, '^%d+'))
  if args.latest or args.replace or args.priority or args.bound or args.take then
    if who == '' then who = NOBODY end
    for _, name in ipairs({ 'latest', 'replace', 'priority', 'bound', 'take' }) do
      if args[name] then who = who .. ' ' .. name .. '=' .. args[name] end
    end
  end
  request = { lease = tonumber(args.lease), mode = args.mode or 'x',
              limit = tonumber(args.limit or 0), who = who, is_part = is_part, take = take,
              needed = take or LOCKS, place_ttl = tonumber(args.place_ttl or 0),
              far_ttl = tonumber(args.far_ttl or 0), since = now - tonumber(args.held or 0) }
  if args.member then
    -- A client's clock that is more than a second ahead must not take the fences with it.
    local proposal = tonumber(args.proposal or 0)
    request.proposal, request.settled = proposal <= now_us + 1000000 and proposal or 0, {}
    for fence in string.gmatch(args.fences or '', '%d+') do table.insert(request.settled, fence) end
  end
end

-- Loads all the locks into "locks". If one was never acquired, it loads the pauses of GLOBs into
-- "globs", and the minimum version for all locks: those that were acquired are marked with them, so
-- they need not be looked up. Returns the refusal if a lock cannot be read, or asks for a newer
-- rlock than the caller's; nil: there is none. A client that has no right to the key of the pauses
-- acquires locks all the same (pcall).
local function load_request()
  local any_unused = false
  for i = 1, LOCKS do
    local lock, refusal = load_lock(i, args.owner)
    if not lock then return refusal end
    locks[i] = lock
    any_unused = any_unused or lock.fence == 0
  end
  local of_all = any_unused and args.pauses and redis.pcall('HMGET', args.pauses, 'p', 'v') or {}
  local minimum_of_all = of_all[2]
  globs = of_all[1]
  for i, lock in ipairs(locks) do
    if minimum_of_all and lock.fence == 0 then set_minimum(lock, minimum_of_all) end
    local minimum = lock.kind ~= KIND and string.sub(lock.kind, #KIND + 2)
    if minimum and is_older(args.version, minimum) then
      return { 'MISFIT', now, 'minimum ' .. minimum, i }
    end
  end
end
