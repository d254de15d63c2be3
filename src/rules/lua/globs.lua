-- Pauses of GLOBs, which also hold for locks that were never acquired. One hash tells them for all
-- locks of a prefix; its field p has one line for each:  GLOB RECORD. GLOB is over the names of the
-- locks' hashes, as SCAN takes it, and RECORD is a pause as a lock has it in p, with the note
-- glob=TEXT (the user's words for it).
--
-- Making such a pause marks each lock that has a hash, in its field p. So scripts look here only
-- for a lock that was never acquired: its first waiter marks it then.
--- @include "glob"
--- @include "lock"

-- Returns that pause of a GLOB which ends last of those that hold for the lock with that key, as
-- read_pause() returns one; nil if there is none. text: that of the field p of the hash; nil or
-- false: there are none.
local function glob_pause(text, key)
  local last
  for glob, record in string.gmatch(text or '', '(%S+) ([^\n]+)') do
    local pause = read_pause(record)
    local ends_later = pause and (not last or pause.till > last.till)
    if ends_later and glob_matcher(glob)(key) then last = pause end
  end
  return last
end
