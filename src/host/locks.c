/* The order of locks. */
#include "host/locks.h"

#include <stdlib.h>

#include "base/mem.h"

uint64_t host_number(const char *table, struct piece name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (const char *at = table; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * UINT64_C(1099511628211);
    return hash;
}

static int compare(const void *a, const void *b)
{
    const struct host_lock *left = a, *right = b;

    return left->number != right->number ? (left->number < right->number ? -1 : 1)
                                         : (int)right->writes - (int)left->writes;
}

struct host_lock *host_locks(const struct unit *unit, const char *table, uint64_t below)
{
    struct host_lock *locks = mem_zeroed((unit->count + 1) * sizeof *locks);

    for (size_t i = 0; i < unit->count; i++) {
        uint64_t number = host_number(table, unit->keys[i].name);
        locks[i] = (struct host_lock){below ? number % below : number, unit->keys[i].writes};
    }
    qsort(locks, unit->count, sizeof *locks, compare);
    return locks;
}
