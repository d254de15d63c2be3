-- A count-down latch: everything about it is in one hash.
--
--   k        kind and version of the layout, latch/1; a key with another kind is not a latch
--   n        the number to count when it was set
--   l        the number left; 0: it is open, and stays there to say so until it expires
--   g        a word that tells it from other latches that had this name
--   s, e     when it was set and when it expires, by the server's clock, in ms
--   d:ID     how many were counted under that id; the same id again counts nothing
--   r:WORD   the same for a call without an id: repeated, as its answer was lost, it counts once
--
-- A latch that does not exist is never an open one: it is absent.
--
-- Key: the latch. Its waiters listen on the channel KEY:latch.
-- Arguments:
--   what                 look, list, delete, set or count
--   [not_after]          server's clock in ms: do nothing later than that
--   word, number, ttl    of set: g, n, and the ms to live
--   field, number, [word]   of count: the field d:... or r:..., how many, and g if it must be that
-- Answers:
--   {'LATCH', now, l, n, g, s, e, 1 if this call has counted}; of list two more: the number of
--     calls without an id, {id...}
--   {'ABSENT', now}   {'EXISTS', now}   {'OTHER', now}: another g   {'MISFIT', now, what}
--   {'STALE', now}
--- @include "arguments"

local KIND = 'latch/1'
local key = KEYS[1]

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

if is_late(now) then return { 'STALE', now } end

-- A whole number as text, exact up to 2^53, where tostring() rounds to 14 digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- The number that a text says with digits only, if Lua can represent it exactly (below 2^53); nil
-- for any other text, and for false, which stands for a missing field.
local function number(text)
  local value = text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text)
  return value and value < 9007199254740992 and value or nil
end

-- Loads the latch of the key. Returns a table: "count" (how many to count when it was set), "left"
-- of them, its "word", "since" when it exists and when it "expires" (ms); or nil and the refusal to
-- return.
local function load_latch()
  local reply = redis.pcall('HMGET', key, 'k', 'n', 'l', 'g', 's', 'e')
  if reply.err then
    local is_no_hash = string.find(reply.err, 'WRONGTYPE', 1, true)
    return nil, is_no_hash and { 'MISFIT', now, 'damaged' } or reply
  end
  local kind = reply[1]
  if kind and kind ~= KIND then return nil, { 'MISFIT', now, kind } end
  if not kind and redis.call('EXISTS', key) == 0 then return nil, { 'ABSENT', now } end
  local latch = { count = number(reply[2]), left = number(reply[3]), word = reply[4],
                  since = number(reply[5]), expires = number(reply[6]) }
  local is_sound = kind and latch.count and latch.left and latch.left <= latch.count and latch.word
    and latch.since and latch.expires
  if not is_sound then return nil, { 'MISFIT', now, 'damaged' } end
  -- One that has expired is gone, even if the server has not removed it yet.
  if latch.expires <= now then return nil, { 'ABSENT', now } end
  return latch
end

-- The answer LATCH, which tells of this latch. counted: 1 if this call has counted; nil: it has
-- not.
local function describe_latch(latch, counted)
  return { 'LATCH', now, latch.left, latch.count, latch.word, latch.since, latch.expires,
           counted or 0 }
end

-- Has the waiters of the latch look at it at once. This only makes it quick: they look by
-- themselves as well, so it does not matter if the server forbids to publish (pcall).
local function call_waiters()
  redis.pcall('PUBLISH', key .. ':latch', '1')
end

-- Makes a latch as the arguments word, number and ttl say, unless there is one ("latch"; nil: there
-- is none). The rest of one that has expired is removed first, with its ids. Returns the
-- answer. As this very call may be repeated when its answer was lost, a latch with the same word is
-- its own.
local function set(latch)
  local word, count, ttl = args.word, tonumber(args.number), tonumber(args.ttl)
  if latch then
    if latch.word == word then return describe_latch(latch) end
    return { 'EXISTS', now }
  end
  if redis.call('EXISTS', key) == 1 then redis.call('PEXPIRE', key, 0) end
  latch = { count = count, left = count, word = word, since = now, expires = now + ttl }
  redis.call('HSET', key, 'k', KIND, 'n', whole(count), 'l', whole(count), 'g', word,
    's', whole(now), 'e', whole(latch.expires))
  local bounded = redis.pcall('PEXPIRE', key, ttl)
  if type(bounded) == 'table' and bounded.err then
    -- A client without the right to expire keys leaves none. PEXPIRE before HSET would have a full
    -- server take a new latch.
    redis.call('HDEL', key, 'k', 'n', 'l', 'g', 's', 'e')
    return bounded
  end
  call_waiters()
  return describe_latch(latch)
end

-- Counts the latch down by args.number, but once for each args.field, in which the latch notes how
-- many were counted. Calls the waiters when nothing is left. Returns the answer.
local function count(latch)
  local field, most = args.field, tonumber(args.number)
  if args.word and args.word ~= latch.word then return { 'OTHER', now } end
  if latch.left == 0 or redis.call('HEXISTS', key, field) == 1 then return describe_latch(latch) end
  -- First, as a full server accepts it: Redis checks maxmemory only at the first write of a script.
  redis.call('PEXPIRE', key, latch.expires - now)
  local counted = math.min(most, latch.left)
  latch.left = latch.left - counted
  redis.call('HSET', key, 'l', whole(latch.left), field, whole(counted))
  if latch.left == 0 then call_waiters() end
  return describe_latch(latch, 1) -- 1: this call has counted
end

-- Tells of the latch, and of all that was counted: the answer LATCH with the number of calls
-- without an id, and the ids in order. It reads all fields, so its cost grows with the ids.
local function list(latch)
  local fields = redis.call('HGETALL', key)
  local ids, unnamed = {}, 0
  for i = 1, #fields, 2 do
    local id = string.match(fields[i], '^d:(.*)$')
    if id then ids[#ids + 1] = id end
    if string.sub(fields[i], 1, 2) == 'r:' then unnamed = unnamed + 1 end
  end
  table.sort(ids)
  local reply = describe_latch(latch)
  reply[9], reply[10] = unnamed, ids
  return reply
end

-- Removes the latch, and calls its waiters, who find it absent. Returns the answer LATCH, as it
-- was. The key is removed by PEXPIRE, as the user of a server that rlock needs has no right to DEL.
local function delete(latch)
  redis.call('PEXPIRE', key, 0)
  call_waiters()
  return describe_latch(latch)
end

local latch, refusal = load_latch()
if not latch and (args.what ~= 'set' or refusal[1] ~= 'ABSENT') then return refusal end
local verbs = { look = describe_latch, list = list, set = set, count = count, delete = delete }
return verbs[args.what](latch)
