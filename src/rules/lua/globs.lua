-- Pauses of GLOBs, which also hold for locks that were never acquired. One hash tells them for all
-- locks of a prefix; its field p has one line for each:  GLOB RECORD. GLOB is over the names of the
-- locks' hashes, as SCAN takes it, and RECORD is a pause as a lock has it in p, with the note
-- glob=TEXT (the user's words for it).
--
-- Making such a pause marks each lock that has a hash, in its field p. So scripts look here only
-- for a lock that was never acquired: its first waiter marks it then.
--- @include "glob"
--- @include "lock"

-- Of the pauses that hold for this lock, the one that ends last; nil if there is none.
local function glob_pause(text, key)
  local found
  for glob, record in string.gmatch(text or '', '(%S+) ([^\n]+)') do
    local pause = read_pause(record)
    if pause and (not found or pause.till > found.till) and glob_matcher(glob)(key) then
      found = pause
    end
  end
  return found
end
