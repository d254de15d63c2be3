-- Returns those names that a GLOB matches: a host (src/host) answers SCAN by it.
--
-- Arguments: the GLOB, and the names.
--- @include "glob"

local matches, found = glob_matcher(ARGV[1]), {}
for i = 2, #ARGV do
  if matches(ARGV[i]) then found[#found + 1] = ARGV[i] end
end
return found
