-- Reads all there is, so its cost grows with the queue. Writes nothing.
-- {'LOCK', now, fence, {holder…}, {waiter…}}, waiters in order; {'MISFIT', now, what}
local lock, refusal = load_lock()
if not lock then return refusal end

local fields = redis.call('HGETALL', key)
local waiters = {}
for i = 1, #fields, 2 do
  local ticket = number(string.match(fields[i], '^q:(%d+)$'))
  local waiter = ticket and read_waiter(fields[i + 1])
  if waiter and waiter.deadline > now then
    waiters[#waiters + 1] = { ticket = ticket, text = fields[i + 1] }
  end
end
table.sort(waiters, function(a, b) return a.ticket < b.ticket end)
for i, waiter in ipairs(waiters) do waiters[i] = waiter.text end
local holder = living(lock.holder)
return { 'LOCK', now, whole(lock.fence), holder and { holder.text } or {}, waiters }
