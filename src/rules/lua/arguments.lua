-- ARGV is a list of names, each followed by its value.
local ask = {}
for i = 1, #ARGV, 2 do ask[ARGV[i]] = ARGV[i + 1] end

-- A call that is sent before the server has answered to SELECT selects the database itself: an
-- error here ends the script.
if ask.database then redis.call('SELECT', ask.database) end

