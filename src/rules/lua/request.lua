-- The request of acquire.lua, and the locks that it is about.
--- @include "attempts"
--- @include "minimum"

local locks = {}

-- Fills in what the call leaves out. Returns the refusal if the call has come too late.
local function parse_request()
  if is_late(now) then return { 'STALE', now } end
  args.lease_text, args.lease = args.lease, tonumber(args.lease)
  args.place_ttl, args.limit = tonumber(args.place_ttl or 0), tonumber(args.limit or 0)
  args.far_ttl = tonumber(args.far_ttl or 0)
  args.mode, args.who = args.mode or 'x', args.who or ''
  args.needed, args.grace = LOCKS, 0
  args.who = with_attempt(args.who)
  if args.latest or args.replace or args.priority or args.bound or args.take then
    if args.who == '' then args.who = NOBODY end
    for _, name in ipairs({ 'latest', 'replace', 'priority', 'bound', 'take' }) do
      if args[name] then args.who = args.who .. ' ' .. name .. '=' .. args[name] end
    end
    -- One of several keys that are asked for one by one.
    args.is_part = args.take and LOCKS == 1
    args.take = not args.is_part and args.take and tonumber(string.match(args.take, '^%d+'))
    args.needed = args.take or LOCKS
  end
  if args.member then
    -- A client's clock that is ahead must not take the fences with it.
    args.proposal = tonumber(args.proposal or 0)
    if args.proposal > now_us + 1000000 then args.proposal = 0 end
    args.settled = {}
    for fence in string.gmatch(args.fences or '', '%d+') do table.insert(args.settled, fence) end
  end
end

-- Loads all the locks. Returns the refusal to return, if there is one. args.globs: the pauses of
-- GLOBs, if one of the locks was never acquired; a pause marks each lock that was, and so does a
-- minimum version. A client that has no right to the key of the pauses acquires locks all the same.
local function load_request()
  local unused = false
  for i = 1, LOCKS do
    local lock, refusal = load_lock(i, args.owner, { 'a' })
    if not lock then return refusal end
    locks[i], lock.number, lock.acquired = lock, i, number(lock.more.a) or 0
    unused = unused or lock.fence == 0
  end
  local told = unused and args.pauses and redis.pcall('HMGET', args.pauses, 'p', 'v') or {}
  args.globs = told[1]
  for i, lock in ipairs(locks) do
    if told[2] and lock.fence == 0 then set_minimum(lock, told[2]) end
    if lock.minimum and is_older(args.version, lock.minimum) then
      return { 'MISFIT', now, 'minimum ' .. lock.minimum, i }
    end
  end
end
