-- include lock.lua
-- include queue.lua

-- Reads all there is, so its cost grows with the queue. Writes nothing.
-- {'LOCK', now, fence, mode, limit, {holder…}, {waiter…}}, waiters in order, those that nest first;
-- {'MISFIT', now, what}
local lock, refusal = load_lock(KEYS[1])
if not lock then return refusal end

local fields = redis.call('HGETALL', KEYS[1])
local families, waiters, mode = {}, {}, 's'
for i = 1, #fields, 2 do
  local name = string.match(fields[i], '^h:(.+)$')
  local base, ticket = string.match(fields[i], '^(q.*):(%d+)$')
  local family = name and read_family(name, fields[i + 1])
  if name and not family then return { 'MISFIT', now, 'damaged' } end
  local waiter = base and number(ticket) and read_waiter(fields[i + 1])
  if family then families[#families + 1] = family end
  if waiter and waiter.deadline > now then
    waiter.elsewhere = false
    waiters[#waiters + 1] = { base = base, ticket = number(ticket), text = write_waiter(waiter) }
  end
end
table.sort(families, function(a, b)
  local one, other = tonumber(a.entries[1].fence), tonumber(b.entries[1].fence)
  return one < other or one == other and a.name < b.name
end)
table.sort(waiters, function(a, b)
  if (a.base == 'q') ~= (b.base == 'q') then return b.base == 'q' end
  return a.base < b.base or a.base == b.base and a.ticket < b.ticket
end)
for i, waiter in ipairs(waiters) do waiters[i] = waiter.text end

local holders = {}
for _, family in ipairs(families) do
  for _, e in ipairs(family.entries) do
    if not is_dead(e) then
      holders[#holders + 1] = write_entry(e)
      if e.mode ~= 's' then mode = e.mode end
    end
  end
end
if #holders == 0 then mode = '' end
local limit = mode == 'l' and lock.held and lock.held.limit or 0
return { 'LOCK', now, whole(lock.fence), mode, limit, holders, waiters }
