-- The request of acquire.lua, and the locks that it is about.
--- @include "attempts"
--- @include "minimum"

local locks = {}

-- Fills in what the call leaves out. Returns the refusal if the call has come too late.
local function parse_request()
  if is_late(now) then return { 'STALE', now } end
  ask.lease_text, ask.lease = ask.lease, tonumber(ask.lease)
  ask.place_ttl, ask.limit = tonumber(ask.place_ttl or 0), tonumber(ask.limit or 0)
  ask.far_ttl = tonumber(ask.far_ttl or 0)
  ask.mode, ask.who = ask.mode or 'x', ask.who or ''
  ask.needed, ask.grace = LOCKS, 0
  ask.who = with_attempt(ask.who)
  if ask.latest or ask.replace or ask.priority or ask.bound or ask.take then
    if ask.who == '' then ask.who = NOBODY end
    for _, name in ipairs({ 'latest', 'replace', 'priority', 'bound', 'take' }) do
      if ask[name] then ask.who = ask.who .. ' ' .. name .. '=' .. ask[name] end
    end
    -- One of several keys that are asked for one by one.
    ask.is_part = ask.take and LOCKS == 1
    ask.take = not ask.is_part and ask.take and tonumber(string.match(ask.take, '^%d+'))
    ask.needed = ask.take or LOCKS
  end
  if ask.member then
    -- A client's clock that is ahead must not take the fences with it.
    ask.proposal = tonumber(ask.proposal or 0)
    if ask.proposal > now_us + 1000000 then ask.proposal = 0 end
    ask.settled = {}
    for fence in string.gmatch(ask.fences or '', '%d+') do table.insert(ask.settled, fence) end
  end
end

-- Loads all the locks. Returns the refusal to return, if there is one. ask.globs: the pauses of
-- GLOBs, if one of the locks was never acquired; a pause marks each lock that was, and so does a
-- minimum version. A client that has no right to the key of the pauses acquires locks all the same.
local function load_request()
  local unused = false
  for i = 1, LOCKS do
    local lock, refusal = load_lock(i, ask.owner, 'a')
    if not lock then return refusal end
    locks[i], lock.number, lock.acquired = lock, i, number(lock.also) or 0
    unused = unused or lock.fence == 0
  end
  local told = unused and ask.pauses and redis.pcall('HMGET', ask.pauses, 'p', 'v') or {}
  ask.globs = told[1]
  for i, lock in ipairs(locks) do
    if told[2] and lock.fence == 0 then set_minimum(lock, told[2]) end
    if lock.minimum and is_older(ask.version, lock.minimum) then
      return { 'MISFIT', now, 'minimum ' .. lock.minimum, i }
    end
  end
end
