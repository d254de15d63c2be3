-- Reads holders and those that nest in them.
--- @include "lock"

-- The entry that a line of h:OWNER describes; nil if the line is damaged. "rest" is all of the line
-- behind the lease: a renewal changes only what is before it, so it is written again as it was. The
-- fence and, as since_text, the time of the acquisition are kept as texts, too.
local function read_entry(line)
  local deadline, lease, rest, fence, owner, since, mode, slot =
    string.match(line, '^(%d+) (%d+) ((%d+) ([^ ]+) (%d+) ([xsl]) (%d+) .*)$')
  if not slot then return nil end
  local entry = { deadline = tonumber(deadline), lease = tonumber(lease), rest = rest,
                  fence = fence, owner = owner, since = tonumber(since), since_text = since,
                  mode = mode, slot = tonumber(slot) }
  local are_exact = entry.deadline < EXACT and entry.lease < EXACT and #fence <= 16
    and entry.since < EXACT and entry.slot < EXACT
  return are_exact and entry or nil
end

-- Whether the lease of the entry has ended. An entry stays in the lock until another client needs
-- its place, and renewing it before that makes it live again.
local function is_dead(entry)
  return entry.deadline <= now
end

-- Whether the entry is that of `rlock run`, which counts on holding the lock as long as its command
-- runs: so no other process may release or renew it. The other entries are those of `rlock
-- acquire`, which marks the names of its owners by "acc" (lock/owner.h), and reservations, which
-- have a note.
local function is_of_run(entry)
  return not string.find(entry.owner, '%-8acc%-%x+%-%x+$')
    and not has_note(entry.rest, 'reserved=1')
end

-- The family of that name, from the text of its field h:NAME, one line for each entry; nil if a
-- line cannot be read, or there is none.
local function read_family(name, text)
  -- Most families have one entry.
  if not string.find(text, '\n', 1, true) then
    local entry = read_entry(text)
    return entry and { name = name, entries = { entry } }
  end
  local family = { name = name, entries = {} }
  for line in string.gmatch(text, '[^\n]+') do
    local entry = read_entry(line)
    if not entry then return nil end
    table.insert(family.entries, entry)
  end
  return #family.entries > 0 and family or nil
end

-- Reads those families into lock.families whose texts load_lock() has loaded: those that are named
-- after the lock's owner and its ancestors. Returns the lock; or, if one cannot be read, nil and
-- the refusal to return, which names the lock by "which", its number among KEYS. A lock that is
-- free and has a family is damaged, too.
local function read_families(lock, which)
  lock.families = {}
  for i, name in ipairs(lock.path) do
    local text = lock.loaded[FAMILIES + i]
    local family = text and read_family(name, text) or nil
    local is_damaged = text and not (family and lock.held)
    if is_damaged then return nil, { 'MISFIT', now, 'damaged', which } end
    lock.families[name] = family
  end
  return lock
end

-- Loads the lock of KEYS[which] as load_lock() does, which has the same arguments, and reads the
-- families of the owner and its ancestors. Returns the lock; or nil and the refusal to return.
local function load_families(which, owner, extra)
  local lock, refusal = load_lock(which, owner, extra)
  if not lock then return nil, refusal end
  return read_families(lock, which)
end

-- The owner's entry, dead or alive, and the family that it is in; nil if it has none in the
-- families that were read (lock.families). An owner's entry may be in the family of any of its
-- ancestors.
local function find_entry(lock, owner)
  local path = owner == lock.owner and lock.path or lineage(owner)
  for i = 1, #path do -- outermost first
    local family = lock.families[path[i]]
    for n = 1, family and #family.entries or 0 do
      if family.entries[n].owner == owner then return family.entries[n], family end
    end
  end
end
