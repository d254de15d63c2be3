-- ARGV is a list of names, each followed by its value.
local args = {}
for i = 1, #ARGV, 2 do args[ARGV[i]] = ARGV[i + 1] end

-- Whether the call comes later than its sender waits for, by the server's clock: it has given up,
-- and may have said something else since.
local function is_late(now)
  return args.not_after and now > tonumber(args.not_after)
end

-- A call that is sent before the server has answered to SELECT selects the database itself: an
-- error here ends the script.
if args.database then redis.call('SELECT', args.database) end

