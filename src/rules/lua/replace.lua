-- Whoever comes with --replace asks those that keep it out to give the lock back, as far as they
-- hear of it: of a semaphore's holders, the one that has had its slot for longest. Returns whether
-- all of them hear of it.
local function ask_obstacles(lock)
  local host, user, pid = string.match(who, '^(%S+) (%S+) (%S+) ')
  local notes, all = 'why=--replace', true
  if user and user ~= '-' then
    notes = 'by=' .. user .. '@' .. host .. '%20pid%20' .. pid .. ' ' .. notes
  end
  local families = all_families(lock) or {}
  local only = lock.held.mode == 'l' and oldest_of(families)
  for _, family in ipairs(families) do
    for _, e in ipairs(family.entries) do
      if not only or family.name == only then
        if can_be_asked(e) then ask(lock, family, e, notes) else all = all and is_dead(e) end
      end
    end
  end
  return all
end

-- Where some of the locks are enough, only of as many as it lacks.
local lacking = needed - #free
for _, lock in ipairs(locks) do
  if lacking > 0 and lock.obstacle and lock.held and not lock.parent and ask_obstacles(lock) then
    lacking = lacking - 1
  end
end
