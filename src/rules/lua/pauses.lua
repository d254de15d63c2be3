-- include database.lua
-- include lock.lua

-- The pauses of GLOBs (globs.lua), in the hash KEYS[1]; the locks are marked by adjust.lua.
-- ARGV: 'pause', the GLOB, for how many ms, and who says so;   'resume', the GLOB
-- {'ADJUSTED', now}   {'NONE', now}: it is not paused   {'MISFIT', now, what, 1}
local verb, glob = ARGV[1], ARGV[2]
local told = redis.pcall('HMGET', KEYS[1], 'p')
if told.err then
  return string.find(told.err, 'WRONGTYPE', 1, true) and { 'MISFIT', now, 'damaged', 1 } or told
end

-- The others, but for those that are over.
local lines, latest, there = {}, 0, false
for other, record in string.gmatch(told[1] or '', '(%S+) ([^\n]+)') do
  local pause = read_pause(record)
  if pause and other == glob then
    there = true
  elseif pause then
    lines[#lines + 1] = other .. ' ' .. record
    latest = math.max(latest, pause.till)
  end
end
if verb == 'pause' then
  local till = now + tonumber(ARGV[3])
  lines[#lines + 1] = glob .. ' ' .. whole(till) .. ' pause ' .. whole(now) .. ' x ' .. ARGV[4]
  latest = math.max(latest, till)
elseif not there then
  return { 'NONE', now }
end

-- PEXPIRE comes first, so that one can be ended on a full server, too.
redis.call('PEXPIRE', KEYS[1], WEEK)
if lines[1] then
  redis.call('HSET', KEYS[1], 'p', table.concat(lines, '\n'))
  redis.call('PEXPIRE', KEYS[1], latest - now + WEEK)
else
  redis.call('HDEL', KEYS[1], 'p')
end
return { 'ADJUSTED', now }
