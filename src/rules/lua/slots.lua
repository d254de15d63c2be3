-- Which slots of a semaphore are taken: six per character of the field b, the first one its lowest
-- bit. A character is 48 ("0") and those bits, so that "o" has all six.
--- @include "lock"

local ZERO = string.byte('0')

-- Marks a slot, counted from 1, as taken (mark 1) or free (mark 0) in lock.slots, the text of the
-- field b; the caller writes that.
local function mark_slot(lock, slot, mark)
  local at = math.ceil(slot / 6) -- which character
  local bit, bits = 2 ^ ((slot - 1) % 6), (string.byte(lock.slots, at) or ZERO) - ZERO
  local mark_before = math.floor(bits / bit) % 2
  bits = bits + (mark - mark_before) * bit
  if at > #lock.slots then lock.slots = lock.slots .. string.rep('0', at - #lock.slots) end
  lock.slots = string.sub(lock.slots, 1, at - 1) .. string.char(ZERO + bits)
    .. string.sub(lock.slots, at + 1)
end

-- Takes the lowest free slot, and returns its number, counted from 1. It is the lowest 0 bit of the
-- first character that has one. The caller has found room, so the slot is within the limit. Writes
-- the field b.
local function take_slot(lock)
  local at = string.find(lock.slots, '[^o]') or #lock.slots + 1
  local bits, slot = (string.byte(lock.slots, at) or ZERO) - ZERO, (at - 1) * 6 + 1
  while bits % 2 == 1 do bits, slot = (bits - 1) / 2, slot + 1 end
  mark_slot(lock, slot, 1)
  redis.call('HSET', lock.key, 'b', lock.slots)
  return slot
end

-- Marks the slot, counted from 1, as free in lock.slots, and writes that to the field b.
local function free_slot(lock, slot)
  mark_slot(lock, slot, 0)
  redis.call('HSET', lock.key, 'b', lock.slots)
end
