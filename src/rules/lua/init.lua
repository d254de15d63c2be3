-- include database.lua
-- include lock.lua
-- include epoch.lua

-- Marks a server that has forgotten nothing, so that it grants at once.
-- ARGV: its marker, 1 to do so whatever the marker says, who gets rights in a database (src/host)
-- {'MARKED', now}   {'GRACE', now, ms until it grants anything, '', 0, 0}
local marker, force = ARGV[1], ARGV[2] == '1'

if not force and redis.call('EXISTS', marker) == 1 then
  local left = grace_left(marker, 0)
  if left > 0 then return { 'GRACE', now, left, '', 0, 0 } end
  return { 'MARKED', now }
end
local run, id = identify()
write_marker(marker, run, id, 0, 0)
return { 'MARKED', now }
