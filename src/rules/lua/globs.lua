-- Pauses of GLOBs, which hold for locks that nobody has had yet as well. One hash tells them for
-- all locks of a prefix; in its field p a line each:  GLOB RECORD. GLOB is over the names of the
-- locks' hashes, as SCAN takes it, and RECORD is a pause as a lock has it in p, with the note
-- glob=WHAT (what the user calls it).
--
-- Who makes such a pause marks each lock that has a hash with it, in p. Only of a lock that was
-- never acquired has a script to look here: its first waiter marks it then.

-- What stands between "[" and "]", from there on, as a pattern of Lua's; and where it ends.
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

-- What stands between the stars, as patterns of Lua's. Each matches so many bytes, no more or less.
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

-- As the server's own MATCH, but in a time that does not grow with the number of stars.
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

-- Of those that hold for this lock the one that ends last; nil if there is none.
local function glob_pause(text, key)
  local found
  for glob, record in string.gmatch(text or '', '(%S+) ([^\n]+)') do
    local pause = read_pause(record)
    if pause and (not found or pause.till > found.till) and glob_matches(glob, key) then
      found = pause
    end
  end
  return found
end
