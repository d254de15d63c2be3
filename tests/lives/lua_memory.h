/* Lua's memory, which is not collected: what scripts leave in it is forgotten all at once. */
#pragma once

/* All that Lua has now stays. No script runs. */
void lua_memory_keep(void);
/* Forgets what came since. No script runs, and nothing points to it. */
void lua_memory_rewind(void);
