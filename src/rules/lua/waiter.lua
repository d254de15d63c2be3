-- The record of a waiter, as it is written in its place.
--- @include "lock"

-- A waiter that is so near to the first one calls often. One behind them is far: it calls the less
-- often the further back it is, and is told when it comes near.
local NEAR = 20 -- tickets

-- The waiter that a record tells of; nil if it cannot be read. An offer, or the mark of a far
-- waiter, comes behind the five words of WHO and their notes; waiter.who is without it.
local function read_waiter(text)
  local deadline, owner, since, mode, who =
    string.match(text, '^(%d+) (%S+) (%d+) ([xslXSL]) (.*)$')
  deadline = number(deadline)
  if not deadline then return nil end
  local waiter = { deadline = deadline, owner = owner, since = since, mode = string.lower(mode),
                   elsewhere = mode == string.upper(mode), who = who }
  local words, what, value = string.match(who, '^(%S+ %S+ %S+ %S+ %S+.-) (%l+)=(%S+)$')
  if what == 'offer' then waiter.who, waiter.offer = words, value end
  if what == 'far' and number(value) then waiter.who, waiter.far = words, number(value) end
  return waiter
end

-- The inverse of read_waiter().
local function write_waiter(w)
  local who = w.who
  if w.offer or w.far then
    who = (who == '' and NOBODY or who)
      .. (w.offer and ' offer=' .. w.offer or ' far=' .. whole(w.far))
  end
  return whole(w.deadline) .. ' ' .. w.owner .. ' ' .. w.since .. ' '
    .. (w.elsewhere and string.upper(w.mode) or w.mode) .. ' ' .. who
end
