-- The order of one owner's requests. A request may arrive late, or twice: a proxy keeps it, a
-- connection that was given up still delivers it, the process that sent it has died. So each one is
-- numbered when it is sent, higher than all before it, and an owner's entry or place notes the
-- highest number of those that were executed. One whose number is not higher changes nothing: it is
-- older, or the same once more. A release that bars its owner keeps its own number with the bar, as
-- it leaves no entry and no place.
--- @include "arguments"
--- @include "lock"

-- Whether the owner's entry or place is the work of this request, or of a later one; false of a
-- request without a number.
local function is_overtaken(text)
  local latest = args.attempt and number(string.match(text, ' attempt=(%d+)'))
  return latest and latest >= tonumber(args.attempt)
end

-- The text of an entry, of a place or of WHO, with the number of this request in place of an
-- earlier one.
local function with_attempt(text)
  if not args.attempt then return text end
  local noted, found = string.gsub(text, ' attempt=%d+', ' attempt=' .. args.attempt, 1)
  if found > 0 then return noted end
  if text == '' or string.sub(text, -1) == ' ' then text = text .. NOBODY end
  return text .. ' attempt=' .. args.attempt
end

-- Whether the field t bars this request: the owner must not come back, or only by a request whose
-- number is higher than that of the one that barred it.
local function is_barred(lock)
  for name, deadline in string.gmatch(lock.barred, '([^=;]+)=(%d+);') do
    local owner, latest = string.match(name, '^([^/]+)/?(%d*)$')
    if owner == args.owner and tonumber(deadline) > now
      and not (args.attempt and number(latest) and tonumber(args.attempt) > number(latest)) then
      return true
    end
  end
  return false
end
