-- Which slots of a semaphore are taken.

-- The bits of a character of lock.slots, the lowest slot first.
local function slots_at(lock, at)
  local byte, bits = (string.byte(lock.slots, at) or 48) - 48, {}
  for i = 1, 6 do
    bits[i] = byte % 2
    byte = math.floor(byte / 2)
  end
  return bits
end

local function mark_slot(lock, slot, mark)
  local at = math.ceil(slot / 6)
  local bits, byte = slots_at(lock, at), 48
  bits[slot - (at - 1) * 6] = mark
  for i = 1, 6 do byte = byte + bits[i] * 2 ^ (i - 1) end
  if at > #lock.slots then lock.slots = lock.slots .. string.rep('0', at - #lock.slots) end
  lock.slots = string.sub(lock.slots, 1, at - 1) .. string.char(byte)
    .. string.sub(lock.slots, at + 1)
end

local function take_slot(lock)
  local at = string.find(lock.slots, '[^o]') or #lock.slots + 1
  local bits, slot = slots_at(lock, at), 1
  while bits[slot] == 1 do slot = slot + 1 end
  slot = slot + (at - 1) * 6
  mark_slot(lock, slot, 1)
  redis.call('HSET', lock.key, 'b', lock.slots)
  return slot
end
