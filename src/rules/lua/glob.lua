-- GLOBs as the server's own MATCH takes them, its oddities included: "[" without an end goes to the
-- end, "]" ends what is in brackets wherever it is, and "z-a" is "a-z".

-- Returns a function that tells whether a name matches, in a time that does not grow with the
-- number of stars.
local function glob_matcher(glob)
  local BACKSLASH = string.byte('\\')

  -- The text between "[" and "]", from byte i on, as a pattern of Lua's; and where it ends. Each
  -- byte of a range is listed, as Lua's own ranges do not escape their ends.
  local function glob_class(i)
    local negated = string.sub(glob, i, i) == '^'
    local set = ''
    if negated then i = i + 1 end
    while i <= #glob and string.sub(glob, i, i) ~= ']' do
      local first, last = string.byte(glob, i), nil
      if first == BACKSLASH and i < #glob then
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
    -- Nothing is in an empty class, and Lua has no pattern for that but "none of all bytes".
    if set == '' then return negated and '.' or '[^%z\1-\255]', i end
    return (negated and '[^' or '[') .. set .. ']', i
  end

  -- The texts between the stars, as patterns of Lua's. Each matches a fixed number of bytes.
  local function glob_parts()
    local parts, part, i = {}, '', 1
    while i <= #glob do
      local c = string.sub(glob, i, i)
      if c == '*' then
        parts[#parts + 1], part = part, ''
      elseif c == '?' then
        part = part .. '.'
      elseif c == '[' then
        local class
        class, i = glob_class(i + 1)
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

  local parts = glob_parts()
  return function(name)
    local at = 1
    for i, part in ipairs(parts) do
      local pattern = (i == 1 and '^' or '') .. part .. (i == #parts and '$' or '')
      local _, to = string.find(name, pattern, at)
      if not to then return false end
      at = to + 1
    end
    return true
  end
end
