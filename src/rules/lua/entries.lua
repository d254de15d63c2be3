-- Reads holders and those that nest in them.
--- @include "lock"

-- The entry e of a line; nil if it is damaged. Only the deadline and the lease change; the text of
-- the rest, and of the fence, is kept.
local function read_entry(line)
  local deadline, lease, rest, fence, owner, since, mode, slot =
    string.match(line, '^(%d+) (%d+) ((%d+) ([^ ]+) (%d+) ([xsl]) (%d+) .*)$')
  if not slot then return nil end
  local e = { deadline = tonumber(deadline), lease = tonumber(lease), rest = rest, fence = fence,
              owner = owner, since = tonumber(since), since_text = since, mode = mode,
              slot = tonumber(slot) }
  return e.deadline < EXACT and e.lease < EXACT and #fence <= 16 and e.since < EXACT
    and e.slot < EXACT
    and e or nil
end

-- Whether the lease of the entry has ended. The entry stays until another client needs its place.
local function is_dead(e)
  return e.deadline <= now
end

-- Whether the entry is of a run, whose guards count on it, so that no other process may release or
-- renew it: rlock acquire marks its owners (lock/owner.h), and a reservation has a note.
local function is_of_run(e)
  return not string.find(e.owner, '%-8acc%-%x+%-%x+$')
    and not has_note(e.rest, 'reserved=1')
end

-- The family of that name; nil if a line of the text cannot be read, or there is none.
local function read_family(name, text)
  if not string.find(text, '\n', 1, true) then
    local e = read_entry(text)
    return e and { name = name, entries = { e } }
  end
  local family = { name = name, entries = {} }
  for line in string.gmatch(text, '[^\n]+') do
    local e = read_entry(line)
    if not e then return nil end
    table.insert(family.entries, e)
  end
  return #family.entries > 0 and family or nil
end

-- Reads the loaded families of the lock's owner and its ancestors into lock.families. Returns the
-- lock; or nil and the refusal to return. A family of a lock that is free is damage, too.
local function read_families(lock, which)
  lock.families = {}
  for i, name in ipairs(lock.path) do
    local text = lock.loaded[FAMILIES + i]
    local family = text and read_family(name, text) or nil
    if text and not (family and lock.held) then return nil, { 'MISFIT', now, 'damaged', which } end
    lock.families[name] = family
  end
  return lock
end

-- As load_lock(), which has the same arguments; and the families of the owner and its ancestors are
-- read.
local function load_families(which, owner, extra)
  local lock, refusal = load_lock(which, owner, extra)
  if not lock then return nil, refusal end
  return read_families(lock, which)
end

-- The owner's entry and its family, dead or alive; nil if it has none, as far as families were
-- read. It may be in the family of any of its ancestors.
local function find_entry(lock, owner)
  local path = owner == lock.owner and lock.path or lineage(owner)
  for i = 1, #path do
    local family = lock.families[path[i]]
    for n = 1, family and #family.entries or 0 do
      if family.entries[n].owner == owner then return family.entries[n], family end
    end
  end
end
