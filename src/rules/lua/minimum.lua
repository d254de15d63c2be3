-- The minimum version of rlock for all locks of a prefix. The hash of the pauses of GLOBs
-- (globs.lua) has it in its field v, and each lock that was acquired, in its field k: setting it
-- marks those. So only a request for a lock that was never acquired looks here.
--- @include "lock"

-- Sets lock.kind to one that asks for that version of rlock; nil or 0.0.0: for none. The caller
-- writes it.
local function set_minimum(lock, minimum)
  lock.kind = minimum and minimum ~= '0.0.0' and KIND .. ' ' .. minimum or KIND
end

-- Whether a program of that version is older; also if it does not tell its version.
local function is_older(version, minimum)
  local function rank(text)
    local x, y, z = string.match(text or '', '^(%d+)%.(%d+)%.(%d+)')
    return x and (tonumber(x) * 100000 + tonumber(y)) * 100000 + tonumber(z) or 0
  end
  return rank(version) < rank(minimum)
end
