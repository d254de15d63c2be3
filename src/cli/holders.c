/* Who counts among the holders of a lock. */
#include "cli/holders.h"

#include <string.h>

#include "lock/owner.h"

bool holder_is_nested(const struct lock_view *lock, const struct lock_party *holder)
{
    for (size_t i = 0; strchr(holder->owner, '.') && i < lock->holder_count; i++)
        if (owner_nests_in(holder->owner, lock->holders[i].owner))
            return true;
    return false;
}

size_t holders_count(const struct lock_view *lock, const struct lock_party **last)
{
    size_t count = 0;

    *last = NULL;
    for (size_t i = 0; i < lock->holder_count; i++) {
        if (holder_is_nested(lock, &lock->holders[i]))
            continue;
        *last = &lock->holders[i];
        count++;
    }
    return count;
}

static const struct lock_party *oldest(const struct lock_party *parties, size_t count)
{
    const struct lock_party *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (!parties[i].kept && !parties[i].unread &&
            (!found || parties[i].age_ms > found->age_ms))
            found = &parties[i];
    return found;
}

const struct lock_party *holders_oldest(const struct lock_view *lock)
{
    return oldest(lock->holders, lock->holder_count);
}

const struct lock_party *holders_reserved(const struct lock_view *lock)
{
    for (size_t i = 0; i < lock->holder_count; i++)
        if (lock->holders[i].reserved)
            return &lock->holders[i];
    return NULL;
}

const struct lock_party *waiters_oldest(const struct lock_view *lock)
{
    return oldest(lock->waiters, lock->waiter_count);
}

bool holders_own_pause(const struct lock_view *lock)
{
    bool of_glob = lock->pause_glob[0] && strcmp(lock->pause_glob, lock->key) != 0;

    return lock->pause.owner[0] && !of_glob;
}
