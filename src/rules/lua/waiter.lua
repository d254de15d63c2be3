-- The record of a waiter, as it is written in its place.
--- @include "lock"

-- The offer comes behind the five words of WHO and their notes.
local function read_waiter(text)
  local deadline, owner, since, mode, who =
    string.match(text, '^(%d+) (%S+) (%d+) ([xslXSL]) (.*)$')
  deadline = number(deadline)
  if not deadline then return nil end
  local words, offer = string.match(who, '^(%S+ %S+ %S+ %S+ %S+.-) offer=(%S+)$')
  return { deadline = deadline, owner = owner, since = since, mode = string.lower(mode),
           elsewhere = mode < 'a', who = words or who, offer = offer }
end

local function write_waiter(w)
  local who = w.who
  if w.offer then who = (who == '' and NOBODY or who) .. ' offer=' .. w.offer end
  return whole(w.deadline) .. ' ' .. w.owner .. ' ' .. w.since .. ' '
    .. (w.elsewhere and string.upper(w.mode) or w.mode) .. ' ' .. who
end
