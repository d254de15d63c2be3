-- Changes the pauses of GLOBs (globs.lua). adjust.lua marks the locks.
--
-- Key: the hash of those pauses.
-- Arguments:
--   what      pause or resume
--   glob      the GLOB
--   ms, who   of pause: for how long, and the WHO of the one who decides
-- Answers:
--   {'ADJUSTED', now}   {'NONE', now}: it is not paused   {'MISFIT', now, what, 1}
--- @include "arguments"
--- @include "lock"

local told = redis.pcall('HMGET', KEYS[1], 'p')
if told.err then
  return string.find(told.err, 'WRONGTYPE', 1, true) and { 'MISFIT', now, 'damaged', 1 } or told
end

-- The others, without those that are over.
local lines, latest, there = {}, 0, false
for other, record in string.gmatch(told[1] or '', '(%S+) ([^\n]+)') do
  local pause = read_pause(record)
  if pause and other == ask.glob then
    there = true
  elseif pause then
    lines[#lines + 1] = other .. ' ' .. record
    latest = math.max(latest, pause.till)
  end
end
if ask.what == 'pause' then
  local till = now + tonumber(ask.ms)
  lines[#lines + 1] = ask.glob .. ' ' .. whole(till) .. ' pause ' .. whole(now) .. ' x ' .. ask.who
  latest = math.max(latest, till)
elseif not there then
  return { 'NONE', now }
end

-- PEXPIRE comes first, so that a pause can be ended on a full server, too.
redis.call('PEXPIRE', KEYS[1], WEEK)
if lines[1] then
  redis.call('HSET', KEYS[1], 'p', table.concat(lines, '\n'))
  redis.call('PEXPIRE', KEYS[1], latest - now + WEEK)
else
  redis.call('HDEL', KEYS[1], 'p')
end
return { 'ADJUSTED', now }
