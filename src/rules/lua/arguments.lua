-- ARGV is a list of names, each followed by its value.
local ask = {}
for i = 1, #ARGV, 2 do ask[ARGV[i]] = ARGV[i + 1] end

-- Whether the call comes later than its sender waits for, by the server's clock: it has given up,
-- and may have said something else since.
local function is_late(now)
  return ask.not_after and now > tonumber(ask.not_after)
end

-- A call that is sent before the server has answered to SELECT selects the database itself: an
-- error here ends the script.
if ask.database then redis.call('SELECT', ask.database) end

