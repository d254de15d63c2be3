-- Takes the lock away from exactly the holders named; from none if one of them does not hold it any
-- more.
--
-- Keys: the lock, and its mirror.
-- Arguments (those in brackets may be missing):
--   owners    separated by spaces
--   how       now; ask: those that can hear it are asked to release, the others lose it; again:
--             they were asked before, and some may have left; over: as again, but those that were
--             asked lose it
--   [purge]   1: empty the queue as well
--   [mirrors]   how many of the keys are mirrors
--   [not_after]   server's clock in ms: do nothing later than that
--   [bar]     of a quorum: ms for which those of the owners that do not hold it must not acquire it
--   [notes]   by whom and why: by=WHOM why=TEXT
-- Answers:
--   {'RELEASED', now}   {'CHANGED', now, 1, holders, ms, holder}   {'MISFIT', now, what, 1}
--   {'MIRROR', now, {key}}   {'STALE', now}
--   {'ASKED', now, 1, how many were asked and still hold it, ms until the last of their leases
--     ends, one of them}
--- @include "arguments"
--- @include "holders"
--- @include "mirror"

if is_late(now) then return { 'STALE', now } end

local how, notes, owners = args.how, args.notes or '', {}
for owner in string.gmatch(args.owners or '', '%S+') do owners[#owners + 1] = owner end
local lock, refusal = load_families(1)
if not lock then return refusal end
local mirrors = lock.mirror and open_mirrors()

for _, owner in ipairs(owners) do
  for _, name in ipairs(lineage(owner)) do
    local text = not lock.families[name] and redis.call('HGET', lock.key, 'h:' .. name)
    if text then lock.families[name] = read_family(name, text) end
  end
end

local lacking = mirrors and mirrors.lacking({ lock })
if lacking then return lacking end

local absent = {}
for _, owner in ipairs(owners) do
  if not (lock.held and find_entry(lock, owner)) then absent[#absent + 1] = owner end
end
-- A holder that has most servers of a quorum takes the lock at the others as well: some may have
-- done so that do not hear of this.
for _, owner in ipairs(args.bar and absent or {}) do
  keep_key(lock, 0)
  note_barred(lock, owner, tonumber(args.bar))
  keep_key(lock, 0)
end
if absent[1] and (how == 'now' or how == 'ask') then
  return { 'CHANGED', now, 1, describe_present(lock) }
end

-- Removes all places, lists and groups of the lock, and has their waiters call: those that are
-- alive queue again. It goes by the names of the fields, not by the queues, so that it also mends
-- what is damaged there; only the queue "q" stays, with its last ticket, as tickets are not used
-- twice.
local function empty_all_queues()
  local fields = redis.call('HGETALL', lock.key)
  local waiters = {}
  for i = 1, #fields, 2 do
    local is_of_waiters = fields[i] == 'o' or string.find(fields[i], '^[goqw]:')
    if is_of_waiters then
      redis.call('HDEL', lock.key, fields[i])
      local waiter = read_waiter(fields[i + 1])
      if waiter then waiters[#waiters + 1] = waiter end
    end
  end
  if lock.queue.last >= lock.queue.first then
    lock.queue.first = lock.queue.last + 1
    write_queue(lock, lock.queue)
  end
  for _, waiter in ipairs(waiters) do notify(lock, waiter) end
end

local asked = { 'ASKED', now, 1, 0, 0, '' }
keep_key(lock, 0)
for _, owner in ipairs(owners) do
  local own, family
  -- A dead one may have been removed with another.
  if lock.held then own, family = find_entry(lock, owner) end
  -- Whether it may be asked no more: with "over", those that were asked before lose it, but one
  -- that was not has acquired the lock anew since.
  local is_too_late = how == 'now' or own and how == 'over' and has_note(own.rest, 'asked=')
  if own and not is_too_late and can_be_asked(own) then
    ask_holder(lock, family, own, notes)
    asked[4], asked[5] = asked[4] + 1, math.max(asked[5], own.deadline - now)
    if asked[4] == 1 then asked[6] = write_entry(own) end
  elseif own then
    if can_be_asked(own) then notify(lock, own) end -- it finds out at once
    note_barred(lock, '!' .. owner, own.lease)
    own.ended = not is_dead(own) and 'revoked=1' .. (notes ~= '' and ' ' or '') .. notes
    wake_after(lock, owner, family, remove(lock, own, family))
  end
end
if mirrors then mirrors.follow(lock) end
if args.purge then empty_all_queues() end
return asked[4] > 0 and asked or { 'RELEASED', now }
