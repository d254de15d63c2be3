/* In which order the keys of a unit are locked: one that is the same for all, so that no two units
 * wait for each other. */
#ifndef RLOCK_HOST_LOCKS_H
#define RLOCK_HOST_LOCKS_H

#include <stdint.h>

#include "host/unit.h"

struct host_lock {
    uint64_t number;
    bool writes;
};

/* FNV-1a of what the tables' names begin with, and of another name. Two names with the same number
 * are in each other's way, and no worse. */
uint64_t host_number(const char *table, struct piece name);

/* The locks of a unit's keys in their order, with numbers below "below", or any if that is 0. Of
 * several with one number, the first one is enough for all. The caller frees. */
struct host_lock *host_locks(const struct unit *unit, const char *table, uint64_t below);

#endif
