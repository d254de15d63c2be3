-- The first of each script. What comes before the server has accepted the connection's database
-- names it, in one more argument at the end, and is to be done in no other: an error here ends it.
local database = string.match(ARGV[#ARGV] or '', '^SELECT (%d+)$')
if database then
  redis.call('SELECT', database)
  table.remove(ARGV)
end

