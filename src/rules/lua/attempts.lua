-- The order of one owner's requests. A request may arrive late, or twice: a proxy keeps it, a
-- connection that was given up still delivers it, the process that sent it has died. So each one is
-- numbered when it is sent, higher than all before it, and an owner's entry or place notes the
-- highest number of those that were executed. One whose number is not higher changes nothing: it is
-- older, or the same once more. A release that bars its owner keeps its own number with the bar, as
-- it leaves no entry and no place.
--- @include "arguments"
--- @include "lock"

-- Whether this request must change nothing, as the owner's entry or place (text) notes that the
-- same or a later request was executed before it. false or nil of a request without a number.
local function is_overtaken(text)
  local latest = args.attempt and number(string.match(text, ' attempt=(%d+)'))
  return latest and latest >= tonumber(args.attempt)
end

-- The text, which is that of an entry, of a place or of WHO, with a note of this request's number,
-- in place of an earlier request's. A request without a number leaves it as it is.
local function with_attempt(text)
  if not args.attempt then return text end
  local note = ' attempt=' .. args.attempt
  local replaced, count = string.gsub(text, ' attempt=%d+', note, 1)
  if count > 0 then return replaced end
  local lacks_who = text == '' or string.sub(text, -1) == ' ' -- notes come behind WHO
  if lacks_who then text = text .. NOBODY end
  return text .. note
end

-- Whether the field t bars this request. It bars its owner (OWNER=UNTIL), or only those requests of
-- the owner whose numbers are not higher than that of the one that barred it (OWNER/N=UNTIL).
local function is_barred(lock)
  for name, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    local owner, latest = string.match(name, '^([^/]+)/?(%d*)$')
    if owner == args.owner and tonumber(deadline) > now then
      local is_later = args.attempt and number(latest) and tonumber(args.attempt) > number(latest)
      if not is_later then return true end
    end
  end
  return false
end
