-- Everything about one lock is in one hash. Its fields, and the only description of them that
-- others are checked against:
--
--   k            kind and version of the layout: lock/1. A later layout may name the version of
--                rlock that it needs: lock/2 1.4. In a store with a minimum version (minimum.lua):
--                lock/1 X.Y.Z
--   f            the last fencing token that was issued
--   s            how the lock is held:  MODE LIMIT FAMILIES EARLIEST LONGEST OLDEST
--                missing: the lock is free
--   b            which slots of a semaphore are taken, six per character: "0" none of them, "1"
--                the first, "2" the second, ... "o" all
--   h:OWNER      a family: OWNER and the owners that nest in it, one line each:
--                DEADLINE LEASE FENCE OWNER SINCE MODE SLOT WHO
--                Notes may follow in WHO: kept=1; hears=1, the holder stops when it is asked to;
--                asked=WHEN by=WHOM why=TEXT, it was asked to release the lock (ask_holder() in
--                holders.lua), and is not renewed any more; attempt=N, the owner's latest request
--                (attempts.lua)
--   q, q:OWNER   the queue, and the queue of those that nest in OWNER:  FIRST LAST CALLED
--                the tickets of the first waiter, of the last one, and of the last one that was
--                told that its turn has come
--   q:N, q:OWNER:N   a waiter's place:  DEADLINE OWNER SINCE MODE WHO
--                MODE is a capital if the waiter waits only for another of its keys. Notes in WHO
--                repeat its options: latest=GROUP replace=1 priority=N bound=MS take=N/M; and
--                attempt=N as in an entry. Behind
--                WHO, of a waiter that accepts the lock by message:
--                offer=TOKEN/LIMIT/UNTIL/LEASE; or, of one that is far from its turn and calls less
--                often, far=MS: for how long its place is kept when it has come near; far=0: it
--                has, and was told to call
--   w:OWNER      the place of that waiter
--   o            how long others may pass a waiter, in ms, and for each priority with which a
--                waiter is in q (0 only beside lower ones), a list:
--                BOUND PRIORITY:FIRST:LAST:CALLED ...
--   o:PRIORITY:N the Nth ticket of that list; its waiter notes rank=PRIORITY:N
--   g:QUEUE:GROUP    the only waiter of a group in which the latest one supersedes the others
--   g            the waiters that were superseded lately, oldest first, one line each:
--                OWNER RECORD, where RECORD is the place of the waiter that came instead
--   l            the stored limit of a semaphore; it overrides LIMIT
--   p            a pause, as the record of a waiter: the one who paused it; DEADLINE is the end of
--                the pause; with the note glob=GLOB it is the pause of a GLOB (globs.lua)
--   po           the pause of this lock only, while p is that of a GLOB that ends later
--   m            another program's key that is held besides (mirror.lua)
--   a            the number of acquisitions
--   c            of the runs that have ended:  NUMBER WAITED BEGAN LAST
--                WAITED is the ms they waited in all, BEGAN when the latest successful run began,
--                LAST when the last successful run ended
--   n:WHAT       of failed, timed, lost, expired and revoked runs, and of refused requests:
--                NUMBER LAST
--   r:N          run number N modulo 20, counted from 0:
--                ENDED FENCE OWNER SINCE MODE SLOT WHO; notes behind WHO say how it ended
--   t            owners that must not acquire:  OWNER=UNTIL;OWNER=UNTIL;... or, as OWNER/N, not by
--                a request up to that number; and, as !OWNER, the owners whose lock was taken away,
--                which must not claim that it was forgotten
--
-- MODE is x (exclusive), s (shared) or l (semaphore). An owner is the path of its ancestors' tokens
-- and its own, A.B.C, so an owner that nests in A starts with "A.". Times are the server's, in ms,
-- read once; src/host/clockless.c has a table of them. Deadlines decide which holder is dead. The
-- key's own time to live only removes a lock that was not used for a week, or for a year if it
-- stores a limit, and never before its pause ends.
--
-- The cost of a call does not grow with the number of holders or waiters; inspect and a purge are
-- the exceptions. Waiters are looked at one by one from the first. No holder can be dead before
-- EARLIEST: only a caller that a holder keeps out after that time looks at all holders, and finds
-- a later EARLIEST or some dead ones. OLDEST is the family that has held the lock for longest, to
-- be shown to others; "-" if it has left and no call has looked at all holders since: then a
-- refused caller looks at them if they are few.
--
-- Memory: Redis checks maxmemory only at the first write of a script, and PEXPIRE and HDEL pass
-- it. So keep_key() comes first where an owner that is already in must be served on a full server.
--
-- The table `lock` is what a call knows of it. Its fields, who sets them, and who reads them (where
-- nothing is said, all do):
--
--   key, number, owner, path   load_lock(): its hash, which of KEYS that is; the caller, and the
--                lineage() of that
--   loaded       load_lock(): the reply of the server; read_families() and is_open() read there
--                whether the caller or one of its ancestors has a family
--   extra        load_lock(): the text of one more field, for the script that names it
--   acquired, ran   the texts of a and c; count_acquired() and remember() keep them up to date
--   kind, fence, slots, barred, mirror, stored_limit   the fields k, f, b, t, m and l, kept up to
--                date by who writes them: set_minimum(), next_fence() and settle(), slots.lua,
--                note_barred(), mirror.lua, adjust.lua
--   limit        of a semaphore, as it was when the lock was loaded, for wake(); adjust.lua sets it
--   held         the field s; nil if the lock is free. The parts that change a family change it:
--                families, holders, quick_grant, grant, renew, reclaim and release
--   paused       the pause that counts: "till", its "text", and "unmarked" if the lock itself does
--                not know it yet (check_conditions(); queue_up() of refuse.lua marks it)
--   families     read_families(), by name: those of the caller and its ancestors; write_family()
--                and write_holders() keep them up to date
--   damaged      prune(): a holder cannot be read; decide() refuses the request
--   own, family, parent   the caller's entry and its family; if it has none, its nearest ancestor
--                that is in, and the family of that. Each script sets them when it looks at its
--                locks; grant() and reclaim() set the "own" of a new holder
--   queue, own_place, listed   the queue q, or the caller's ("mine": its ticket there); the field
--                w:OWNER, if the caller waits; and its number in the list of its priority:
--                places.lua, leave_queue()
--   lists, bound   lists_of(), when somebody asks for them: the field o; queue.lua and places.lua
--                keep them up to date
--   obstacle, turn   decide(): what keeps the caller out, and what find_turn() says; the rest of
--                acquire.lua reads them
--
-- Other tables, by the names that they have in all files:
--
--   held         mode, limit, count, earliest, longest, oldest: the words of s, FAMILIES as "count"
--   entry        a line of h:OWNER: deadline, lease, fence, owner, since, mode and slot;
--                "rest" is the text behind the lease, which stays as it is where only the first two
--                change; the notes of WHO are found in it. "ended": how its run ended (memory.lua)
--   family       name: the OWNER of its field; entries: of that owner and those that nest in it,
--                in the order in which they came. One whose entries are all dead is a holder until
--                a call finds that out
--   queue        base: its field, which is 'q' or, for those that nest, 'q:OWNER'; only the first
--                kind has lists, and waiters that are far. first, last, called. mine: the ticket of
--                the caller. near_from, dead: for recall_near()
--   list         priority, and first, last, called: numbers in the list
--   line         a queue or a list: where the difference does not matter
--   mirror       kind, holder, name: the words of m; and key (mirror.lua). lock.mirror is the text
--   waiter       deadline, owner, since, mode, elsewhere (it waits only for another of its keys),
--                who, offer, far; ticket: of waiter_at(). An empty owner: see first_waiter()
--   parent       the entry of the nearest ancestor that holds the lock
--   obstacle     count, till, shown: how many holders keep the caller out, before which time all of
--                them live, and one as text; "closed": see obstacle()
--
-- The table `args` is what the caller has sent, and no part changes it; `request` is what
-- acquire.lua makes of that (request.lua).
local KIND = 'lock/1'
local WEEK = 604800000
local YEAR = 31536000000
local NOBODY = '- - - - -' -- the five words of WHO where they are not known
local FAMILIES = 12       -- so many fields load_lock() asks for before those of families

-- So many of KEYS are locks. Behind them are the mirrors (mirror.lua) that the call may touch.
local LOCKS = #KEYS - tonumber(args.mirrors or 0)

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- Both as text: us_text, now_text. Printing a number takes longer than finding a field.
local us_text = clock[1] .. string.sub('00000' .. clock[2], -6)
local now_text = string.sub(us_text, 1, -4)

-- A whole number as text, exact up to 2^53: .. and tostring() round to 14 digits, and take longer.
-- %d would convert it to a long, which has 32 bits on some servers.
local function whole(number)
  return string.format('%.0f', number)
end

local EXACT = 9007199254740992 -- 2^53

-- The number that a text says with digits only, if Lua can represent it exactly (below EXACT); nil
-- for any other text, and for false, which stands for a missing field. tonumber() also accepts
-- inf, nan, 0x10 and 1e3, with which a loop over tickets would never end. Where a pattern has found
-- digits, a comparison with EXACT is the whole check.
local function number(text)
  local value = text and string.find(text, '^%d+$') and tonumber(text)
  return value and value < EXACT and value or nil
end

-- The owner's ancestors, outermost first, and the owner: of A.B.C, the list { A, A.B, A.B.C }.
local function lineage(owner)
  if not string.find(owner, '.', 1, true) then return { owner } end
  local path = {}
  for dot_at in string.gmatch(owner, '()%.') do
    path[#path + 1] = string.sub(owner, 1, dot_at - 1)
  end
  path[#path + 1] = owner
  return path
end

-- Whether a text that ends with notes (a record, the "rest" of an entry, or WHO) has this one. The
-- beginning of a note is enough: "asked=" finds it with any value.
local function has_note(text, note)
  return string.find(text, ' ' .. note, 1, true) ~= nil
end

-- Records -----------------------------------------------------------------------------------------

-- How the lock is held (the table `held` above), from the text of the field s; nil if it is
-- damaged.
local function read_held(text)
  local mode, limit, count, earliest, longest, oldest =
    string.match(text, '^([xsl]) (%d+) (%d+) (%d+) (%d+) ([^ ]+)$')
  if not oldest then return nil end
  local held = { mode = mode, limit = tonumber(limit), count = tonumber(count),
                 earliest = tonumber(earliest), longest = tonumber(longest), oldest = oldest }
  local are_exact = held.limit < EXACT and held.count < EXACT and held.earliest < EXACT
    and held.longest < EXACT
  return are_exact and held or nil
end

-- The text of the field s that says how the lock is held: the inverse of read_held().
local function state_text(held)
  return string.format('%s %.0f %.0f %.0f %.0f ', held.mode, held.limit, held.count, held.earliest,
    held.longest) .. held.oldest
end

-- Whether one of the holders may be dead, so that somebody must look at each: the earliest of their
-- deadlines is past, or further ahead than the longest of their leases. Then the server's clock was
-- set back since that deadline was written.
local function is_in_doubt(held)
  return held.earliest <= now or held.earliest > now + held.longest
end

-- The table `queue` that the text of the field "base" describes; without a text (nil or false) an
-- empty one; nil if the text is damaged. near_from is the first ticket as it was written: waiters
-- near to that were told so then, and recall_near() of queue.lua tells those that have come near
-- since.
local function read_queue(base, text)
  if not text then return { base = base, first = 1, last = 0, called = 0, near_from = 1 } end
  local first, last, called = string.match(text, '^(%d+) (%d+) (%d+)$')
  local queue = { base = base, first = tonumber(first), last = tonumber(last),
                  called = tonumber(called), near_from = tonumber(first) }
  local are_exact = called and queue.first < EXACT and queue.last < EXACT and queue.called < EXACT
  local is_sound = are_exact and queue.first >= 1 and queue.last >= queue.first - 1
  return is_sound and queue or nil
end

-- The pause that the text of the field p or po describes: when it ends ("till"), and that text; nil
-- if it is over.
local function read_pause(text)
  local till = number(string.match(text, '^(%d+) '))
  return till and till > now and { till = till, text = text } or nil
end

-- The lock ----------------------------------------------------------------------------------------

-- The names of the fields that load_lock() asks for: in the order in which it takes the values, so
-- many as FAMILIES says; then the family of each owner of the path; and the field "extra", if it is
-- not nil.
local function fields_to_load(path, extra)
  local fields = { 'k', 'f', 's', 'b', 't', 'q', 'm', 'l', 'p', 'w:' .. path[#path], 'a', 'c' }
  for i, name in ipairs(path) do fields[FAMILIES + i] = 'h:' .. name end
  fields[FAMILIES + #path + 1] = extra
  return fields
end

-- Whether three fields that are kept as texts have the form that they should: the caller's place,
-- the barred owners, and the mirror. Each is false if the lock has no such field, which is sound.
local function are_sound(place, barred, mirror)
  if place and not string.find(place, '^q.*:%d+$') then return false end
  if barred and string.gsub(barred, '[^=;]+=%d+;', '') ~= '' then return false end
  return not mirror or string.find(mirror, '^%l+ %S+ .') ~= nil
end

-- Loads the lock of KEYS[which] as "owner" finds it; an owner of nil is none. Returns the table
-- `lock`; or nil and the refusal to return, where the layout is another one, or a field cannot be
-- read. extra: the name of one more field to load, whose text is lock.extra then. The families of
-- the owner and its ancestors are loaded, but not read: read_families() does that.
local function load_lock(which, owner, extra)
  local key, path = KEYS[which], lineage(owner or '')
  local reply = redis.pcall('HMGET', key, unpack(fields_to_load(path, extra)))
  if reply.err then
    local is_no_hash = string.find(reply.err, 'WRONGTYPE', 1, true)
    return nil, is_no_hash and { 'MISFIT', now, 'damaged', which } or reply
  end
  -- Each is the text of its field, or false where there is none.
  local kind, fence_text, state, slots, barred, queue_text, mirror, limit_text, pause, place,
    acquired, ran = unpack(reply, 1, FAMILIES)
  if kind and kind ~= KIND and not string.find(kind, '^lock/1 %d+%.%d+%.%d+$') then
    return nil, { 'MISFIT', now, kind, which }
  end
  local fence, queue = number(fence_text or '0'), read_queue('q', queue_text)
  local held, stored_limit = state and read_held(state), limit_text and number(limit_text) or nil
  -- A key that exists without the field k is not a lock.
  local is_sound = (kind or redis.call('EXISTS', key) == 0) and fence and queue
    and (held or not state) and (stored_limit or not limit_text)
    and are_sound(place, barred, mirror)
  if not is_sound then return nil, { 'MISFIT', now, 'damaged', which } end
  if stored_limit and held and held.mode == 'l' then held.limit = stored_limit end
  return { key = key, number = which, kind = kind or KIND, owner = owner, path = path,
           fence = fence, held = held, stored_limit = stored_limit,
           limit = stored_limit or held and held.limit,
           slots = slots or '', barred = barred or '', queue = queue, own_place = place or nil,
           mirror = mirror or nil, paused = pause and read_pause(pause) or nil,
           acquired = acquired or '0', ran = ran or '',
           extra = reply[FAMILIES + #path + 1], loaded = reply }
end

-- Sets the key's time to live: a week after the longest lease and the pause have ended, or a year
-- if a limit is stored. lease: ms of a holder that the call adds or renews; 0: it does neither.
-- A change that may make the key calls this before and after: a client without the right to expire
-- keys fails at the first call, and has changed nothing; the second one finds the key made.
local function keep_key(lock, lease)
  local longest = lock.held and lock.held.longest or 0
  if lock.paused then longest = math.max(longest, lock.paused.till - now) end
  redis.call('PEXPIRE', lock.key,
    whole((lock.stored_limit and YEAR or WEEK) + math.max(lease, longest)))
end

-- Makes the key, with a time to live, if there was none when the lock was loaded. HSET comes first,
-- so that a full server refuses it. Where the client has no right to expire keys, the field is
-- removed again, and the last PEXPIRE ends the script with the error of that.
local function make_key(lock)
  if lock.loaded[1] then return end
  redis.call('HSET', lock.key, 'k', lock.kind)
  if type(redis.pcall('PEXPIRE', lock.key, WEEK)) == 'number' then return end
  redis.call('HDEL', lock.key, 'k')
  redis.call('PEXPIRE', lock.key, WEEK)
end
