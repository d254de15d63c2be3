-- Reads all there is; the only script whose cost grows with the queue. Writes nothing.
-- {'LOCK', now, fence, {holder…}, {waiter…}}, waiters in order; {'MISFIT', now, what}
local fields = redis.call('HGETALL', key)
local lock = {}
local tickets = {}
for i = 1, #fields, 2 do
  lock[fields[i]] = fields[i + 1]
  local ticket = string.match(fields[i], '^q:(%d+)$')
  if ticket then tickets[#tickets + 1] = tonumber(ticket) end
end
if lock.k and lock.k ~= KIND then return { 'MISFIT', now, lock.k } end
if lock.h and not read_holder(lock.h) then return { 'MISFIT', now, 'damaged' } end

table.sort(tickets)
local waiters = {}
for _, ticket in ipairs(tickets) do
  local text = lock['q:' .. whole(ticket)]
  local waiter = read_waiter(text)
  if waiter and waiter.deadline > now then waiters[#waiters + 1] = text end
end
local holder = lock.h and living(read_holder(lock.h))
return { 'LOCK', now, lock.f or '0', holder and { holder.text } or {}, waiters }
