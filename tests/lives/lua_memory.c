/* Lua's collector, and malloc(3) for it, took half of a life. Between two calls, Lua has nothing
 * that the next one needs but the scripts themselves. So nothing of its memory is collected; it
 * is made again what it was when Lua had loaded the scripts. Few of its pages are ever written
 * after that: to find them, all are protected, and the first write to each is a fault. */
#include "lives/lua_memory.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#define ROOM ((size_t)1 << 30) /* of addresses */
#define PAGE ((size_t)4096)
/* A call writes fewer pages than that, but for one in which Lua makes room for more strings: then
 * all strings are linked anew. */
#define FEW 16

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset); /* NOLINT(bugprone-reserved-identifier) */
int __real_sigaction(int signo, const struct sigaction *action,
                     struct sigaction *before); /* NOLINT(bugprone-reserved-identifier) */

static char *memory, *kept;
static size_t used, kept_size;
static size_t *written, written_count; /* pages of what is kept, by their first byte */

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

static void protect(size_t from, size_t size, int protection)
{
    if (mprotect(memory + from, size, protection) != 0)
        abort();
}

/* The program dies of any other fault. */
static void on_fault(int signo, siginfo_t *fault, void *context)
{
    static const struct sigaction deadly = {.sa_handler = SIG_DFL};
    size_t at = (size_t)((char *)fault->si_addr - memory) / PAGE * PAGE;

    (void)context;
    if (at >= kept_size) {
        __real_sigaction(signo, &deadly, NULL);
        return;
    }
    protect(at, PAGE, PROT_READ | PROT_WRITE);
    written[written_count++] = at;
}

lua_State *__wrap_luaL_newstate(void)
{
    static const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    memory = __real_mmap64(NULL, ROOM, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    lua_State *lua = lua_newstate(allocate, NULL);
    if (lua)
        lua_gc(lua, LUA_GCSTOP, 0);
    __real_sigaction(SIGSEGV, &action, NULL);
    return lua;
}

/* No script runs for too long here, so its steps need not be counted. */
int __wrap_lua_sethook(lua_State *lua, lua_Hook hook, int mask, int count)
{
    (void)lua, (void)hook, (void)mask, (void)count;
    return 1;
}

void lua_memory_keep(void)
{
    used = (used + PAGE - 1) / PAGE * PAGE;
    kept_size = used;
    kept = mem_checked(realloc(kept, kept_size));
    memcpy(kept, memory, kept_size);
    written = mem_checked(realloc(written, kept_size / PAGE * sizeof *written));
    written_count = 0;
    protect(0, kept_size, PROT_READ);
}

void lua_memory_rewind(void)
{
    for (size_t i = 0; i < written_count; i++)
        memcpy(memory + written[i], kept + written[i], PAGE);
    if (written_count > FEW) {
        protect(0, kept_size, PROT_READ);
        written_count = 0;
    }
    used = kept_size;
}
