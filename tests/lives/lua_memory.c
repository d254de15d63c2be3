/* Lua's collector, and malloc(3) for it, took half of a life. Between two calls, Lua has nothing
 * that the next one needs but the scripts themselves. So nothing of its memory is collected; from
 * time to time it is overwritten by a copy that was made when Lua had loaded the scripts. */
#include "lives/lua_memory.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#define ROOM ((size_t)1 << 30) /* of addresses */
#define MUCH ((size_t)1 << 19)

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset); /* NOLINT(bugprone-reserved-identifier) */

static char *memory, *kept;
static size_t used, kept_size;

/* The latest piece grows where it is, and its room is used again. */
static void *allocate(void *arg, void *old, size_t old_size, size_t size)
{
    bool is_last = old && (char *)old + old_size == memory + used;
    size_t from = is_last ? (size_t)((char *)old - memory) : (used + 15) / 16 * 16;

    (void)arg;
    if (is_last || size > old_size) {
        if (from + size > ROOM)
            return NULL;
        used = from + size;
        if (old && !is_last)
            memcpy(memory + from, old, old_size);
        return size > 0 ? memory + from : NULL;
    }
    return size > 0 ? old : NULL;
}

lua_State *__wrap_luaL_newstate(void)
{
    memory = __real_mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    lua_State *lua = lua_newstate(allocate, NULL);
    if (lua)
        lua_gc(lua, LUA_GCSTOP, 0);
    return lua;
}

void lua_memory_keep(void)
{
    kept_size = used;
    kept = mem_checked(realloc(kept, kept_size));
    memcpy(kept, memory, kept_size);
}

void lua_memory_rewind(void)
{
    if (used < kept_size + MUCH)
        return;
    memcpy(memory, kept, kept_size);
    used = kept_size;
}
