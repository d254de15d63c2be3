-- The minimum version of rlock for all locks of a prefix. The hash of the pauses of GLOBs
-- (globs.lua) has it in its field v, and each lock that was acquired, in its field k: setting it
-- marks those. So only a request for a lock that was never acquired looks here.
--- @include "lock"

-- Sets lock.kind so that the lock asks for that version of rlock (X.Y.Z) at least; minimum nil or
-- 0.0.0: for none. The caller writes it, to the field k.
local function set_minimum(lock, minimum)
  local has_minimum = minimum and minimum ~= '0.0.0'
  lock.kind = has_minimum and KIND .. ' ' .. minimum or KIND
end

-- Whether a program of that version (X.Y.Z) is older than the minimum version. A program that does
-- not tell its version (nil) counts as older.
local function is_older(version, minimum)
  -- One number by which versions are in order; 0 of a text that is none.
  local function order_of(text)
    local major, minor, patch = string.match(text or '', '^(%d+)%.(%d+)%.(%d+)')
    if not major then return 0 end
    return (tonumber(major) * 100000 + tonumber(minor)) * 100000 + tonumber(patch)
  end
  return order_of(version) < order_of(minimum)
end
