-- Changes the pauses of GLOBs (globs.lua) or the minimum version (minimum.lua). adjust.lua marks
-- the locks.
--
-- Key: the hash of those pauses.
-- Arguments:
--   what      pause, resume, or minimum
--   [not_after]   server's clock in ms: do nothing later than that
--   version   of minimum: X.Y.Z; 0.0.0: none
--   glob      of the others: the GLOB
--   ms, who   of pause: for how long, and the WHO of the one who decides
-- Answers:
--   {'ADJUSTED', now}   {'NONE', now}: it is not paused   {'MISFIT', now, what, 1}
--   {'STALE', now}
--- @include "arguments"
--- @include "lock"

if is_late(now) then return { 'STALE', now } end
local stored = redis.pcall('HMGET', KEYS[1], 'p', 'v')
if stored.err then
  return string.find(stored.err, 'WRONGTYPE', 1, true) and { 'MISFIT', now, 'damaged', 1 } or stored
end
local stored_pauses, stored_minimum = stored[1], stored[2]

-- The others, without those that are over.
local lines, latest, there = {}, 0, false
for other, record in string.gmatch(stored_pauses or '', '(%S+) ([^\n]+)') do
  local pause = read_pause(record)
  if pause and other == args.glob then
    there = true
  elseif pause then
    lines[#lines + 1] = other .. ' ' .. record
    latest = math.max(latest, pause.till)
  end
end
if args.what == 'pause' then
  local till = now + tonumber(args.ms)
  lines[#lines + 1] = args.glob .. ' ' .. whole(till) .. ' pause ' .. whole(now) .. ' x '
    .. args.who
  latest = math.max(latest, till)
elseif args.what == 'resume' and not there then
  return { 'NONE', now }
end
local minimum = stored_minimum
if args.what == 'minimum' then minimum = args.version ~= '0.0.0' and args.version end

-- Sets the key's time to live, in ms; if a minimum version is stored, to 100 years instead, as that
-- stays. It is called before the first write, since a full server lets a script continue that
-- begins with PEXPIRE, so that a pause can be ended there; and after the last one, since there may
-- have been no key before.
local function keep_for(ms)
  redis.call('PEXPIRE', KEYS[1], whole(minimum and 100 * YEAR or ms))
end

keep_for(WEEK)
if lines[1] then
  redis.call('HSET', KEYS[1], 'p', table.concat(lines, '\n'))
else
  redis.call('HDEL', KEYS[1], 'p')
end
if minimum and args.what == 'minimum' then
  redis.call('HSET', KEYS[1], 'v', minimum)
elseif stored_minimum and not minimum then
  redis.call('HDEL', KEYS[1], 'v')
end
keep_for(math.max(latest - now, 0) + WEEK)
return { 'ADJUSTED', now }
