-- GLOBs as the server's own MATCH takes them, its oddities included: "[" without an end goes to the
-- end, "]" ends what is in brackets wherever it is, and "z-a" is "a-z".

-- Returns a function(name) that tells whether the name matches the GLOB. The parts between the
-- stars are searched one after the other, each as early as it can be found, so the time does not
-- grow with the number of stars.
local function glob_matcher(glob)
  local BACKSLASH = string.byte('\\')

  -- Reads the class of bytes that "[" begins in the GLOB; "at" is the position behind that. Returns
  -- a pattern of Lua that matches a byte of the class, and the position of "]", or behind the end.
  -- Each byte of a range is listed, as the ends of a range in Lua cannot be escaped.
  local function glob_class(at)
    local is_negated = string.sub(glob, at, at) == '^'
    local bytes = ''
    if is_negated then at = at + 1 end
    while at <= #glob and string.sub(glob, at, at) ~= ']' do
      local first, last = string.byte(glob, at), nil
      if first == BACKSLASH and at < #glob then
        at = at + 1
        first = string.byte(glob, at)
      elseif at + 2 <= #glob and string.sub(glob, at + 1, at + 1) == '-' then
        at = at + 2
        last = string.byte(glob, at)
      end
      last = last or first
      for byte = math.min(first, last), math.max(first, last) do
        bytes = bytes .. string.gsub(string.char(byte), '%W', '%%%0') -- escaped
      end
      at = at + 1
    end
    -- Nothing is in an empty class, and Lua has no pattern for that but "none of all bytes".
    if bytes == '' then return is_negated and '.' or '[^%z\1-\255]', at end
    return (is_negated and '[^' or '[') .. bytes .. ']', at
  end

  -- The texts between the stars of the GLOB, as a list of patterns of Lua. Each matches a fixed
  -- number of bytes.
  local function glob_parts()
    local parts, part, at = {}, '', 1
    while at <= #glob do
      local char = string.sub(glob, at, at)
      if char == '*' then
        parts[#parts + 1], part = part, ''
      elseif char == '?' then
        part = part .. '.'
      elseif char == '[' then
        local class
        class, at = glob_class(at + 1)
        part = part .. class
      else
        if char == '\\' and at < #glob then
          at = at + 1
          char = string.sub(glob, at, at)
        end
        part = part .. string.gsub(char, '%W', '%%%0') -- escaped
      end
      at = at + 1
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
