-- The record of a waiter, as it is written in its place.
--- @include "lock"

-- A waiter that is so near to the first one calls often. One behind them is far: it calls the less
-- often the further back it is, and is told when it comes near.
local NEAR = 20 -- tickets

-- The table `waiter` (lock.lua) that the record in a place describes; nil if it cannot be read. A
-- record may end with an offer, or with the mark of a far waiter: then waiter.offer or waiter.far
-- has it, and waiter.who is without it.
local function read_waiter(text)
  local deadline, owner, since, mode, who =
    string.match(text, '^(%d+) (%S+) (%d+) ([xslXSL]) (.*)$')
  deadline = number(deadline)
  if not deadline then return nil end
  local waiter = { deadline = deadline, owner = owner, since = since, mode = string.lower(mode),
                   elsewhere = mode == string.upper(mode), who = who }
  -- WHO has five words and then notes.
  local rest, last_note, value = string.match(who, '^(%S+ %S+ %S+ %S+ %S+.-) (%l+)=(%S+)$')
  if last_note == 'offer' then waiter.who, waiter.offer = rest, value end
  if last_note == 'far' and number(value) then waiter.who, waiter.far = rest, number(value) end
  return waiter
end

-- The record of a waiter, as its place has it: the inverse of read_waiter().
local function write_waiter(waiter)
  local who = waiter.who
  if waiter.offer or waiter.far then
    local note = waiter.offer and ' offer=' .. waiter.offer or ' far=' .. whole(waiter.far)
    who = (who == '' and NOBODY or who) .. note
  end
  local mode = waiter.elsewhere and string.upper(waiter.mode) or waiter.mode
  return whole(waiter.deadline) .. ' ' .. waiter.owner .. ' ' .. waiter.since .. ' ' .. mode .. ' '
    .. who
end
