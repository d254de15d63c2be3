-- ARGV is a list of names, each followed by its value.
local args = {}
for i = 1, #ARGV, 2 do args[ARGV[i]] = ARGV[i + 1] end

-- Whether the call comes too late: its sender waited for an answer until not_after, has given up,
-- and may have asked for something else since. now, not_after: ms, by the server's clock. A call
-- without not_after is never too late.
local function is_late(now)
  return args.not_after and now > tonumber(args.not_after)
end

-- A call that is sent before the server has answered to SELECT selects the database itself: an
-- error here ends the script.
if args.database then redis.call('SELECT', args.database) end

