-- Which slots of a semaphore are taken: six per character of the field b, the first one its lowest
-- bit. A character is 48 ("0") and those bits, so that "o" has all six.
--- @include "lock"

-- Marks a slot, counted from 1, as taken (mark 1) or free (0) in lock.slots; the caller writes it.
local function mark_slot(lock, slot, mark)
  local at = math.ceil(slot / 6)
  local bit, byte = 2 ^ ((slot - 1) % 6), (string.byte(lock.slots, at) or 48) - 48
  byte = byte + (mark - math.floor(byte / bit) % 2) * bit
  if at > #lock.slots then lock.slots = lock.slots .. string.rep('0', at - #lock.slots) end
  lock.slots = string.sub(lock.slots, 1, at - 1) .. string.char(48 + byte)
    .. string.sub(lock.slots, at + 1)
end

-- Takes the lowest free slot, in the first character with a 0 bit, and returns it. The caller has
-- found room, so the slot is within the limit.
local function take_slot(lock)
  local at = string.find(lock.slots, '[^o]') or #lock.slots + 1
  local byte, slot = (string.byte(lock.slots, at) or 48) - 48, (at - 1) * 6 + 1
  while byte % 2 == 1 do byte, slot = (byte - 1) / 2, slot + 1 end
  mark_slot(lock, slot, 1)
  redis.call('HSET', lock.key, 'b', lock.slots)
  return slot
end

-- Marks the slot as free, and writes that.
local function free_slot(lock, slot)
  mark_slot(lock, slot, 0)
  redis.call('HSET', lock.key, 'b', lock.slots)
end
