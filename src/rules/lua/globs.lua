-- Pauses of GLOBs, which also hold for locks that were never acquired. One hash tells them for all
-- locks of a prefix; its field p has one line for each:  GLOB RECORD. GLOB is over the names of the
-- locks' hashes, as SCAN takes it, and RECORD is a pause as a lock has it in p, with the note
-- glob=TEXT (the user's words for it).
--
-- Making such a pause marks each lock that has a hash, in its field p. So scripts look here only
-- for a lock that was never acquired: its first waiter marks it then.
--- @include "lock"

-- Of the pauses that hold for this lock, the one that ends last; nil if there is none.
local function glob_pause(text, key)
  -- The text between "[" and "]", from there on, as a pattern of Lua's; and where it ends.
  local function glob_class(glob, i)
    local negated = string.sub(glob, i, i) == '^'
    local set = ''
    if negated then i = i + 1 end
    while i <= #glob and string.sub(glob, i, i) ~= ']' do
      local first, last = string.byte(glob, i), nil
      if first == 92 and i < #glob then
        i = i + 1
        first = string.byte(glob, i)
      elseif i + 2 <= #glob and string.sub(glob, i + 1, i + 1) == '-' then
        i = i + 2
        last = string.byte(glob, i)
      end
      last = last or first
      for byte = math.min(first, last), math.max(first, last) do
        set = set .. string.gsub(string.char(byte), '%W', '%%%0')
      end
      i = i + 1
    end
    if set == '' then return negated and '.' or '[^%z\1-\255]', i end
    return (negated and '[^' or '[') .. set .. ']', i
  end

  -- The texts between the stars, as patterns of Lua's. Each matches a fixed number of bytes.
  local function glob_parts(glob)
    local parts, part, i = {}, '', 1
    while i <= #glob do
      local c = string.sub(glob, i, i)
      if c == '*' then
        parts[#parts + 1], part = part, ''
      elseif c == '?' then
        part = part .. '.'
      elseif c == '[' then
        local class
        class, i = glob_class(glob, i + 1)
        part = part .. class
      else
        if c == '\\' and i < #glob then
          i = i + 1
          c = string.sub(glob, i, i)
        end
        part = part .. string.gsub(c, '%W', '%%%0')
      end
      i = i + 1
    end
    parts[#parts + 1] = part
    return parts
  end

  -- As the server's own MATCH does, but in a time that does not grow with the number of stars.
  local function glob_matches(glob, name)
    local parts, at = glob_parts(glob), 1
    for i, part in ipairs(parts) do
      local pattern = (i == 1 and '^' or '') .. part .. (i == #parts and '$' or '')
      local _, to = string.find(name, pattern, at)
      if not to then return false end
      at = to + 1
    end
    return true
  end

  local found
  for glob, record in string.gmatch(text or '', '(%S+) ([^\n]+)') do
    local pause = read_pause(record)
    if pause and (not found or pause.till > found.till) and glob_matches(glob, key) then
      found = pause
    end
  end
  return found
end
