/* Who counts among the holders of a lock. Pure. */
#ifndef RLOCK_CLI_HOLDERS_H
#define RLOCK_CLI_HOLDERS_H

#include "lock/lock.h"

/* Whether the holder nests in another one, with whom it holds the lock. */
bool holder_is_nested(const struct lock_view *lock, const struct lock_party *holder);

/* How many holders there are that do not nest in another; *last is the last of them, NULL: none. */
size_t holders_count(const struct lock_view *lock, const struct lock_party **last);

/* Who has held the lock for longest, as far as that may be read, and is not merely kept by
 * --at-least; or NULL. */
const struct lock_party *holders_oldest(const struct lock_view *lock);

/* The first holder that is a reservation, by a person, or NULL. */
const struct lock_party *holders_reserved(const struct lock_view *lock);
/* Whether the KEY or GLOB itself is paused, and not only by a GLOB that it matches. */
bool holders_own_pause(const struct lock_view *lock);

/* Who has waited for longest, as far as that may be read; or NULL. */
const struct lock_party *waiters_oldest(const struct lock_view *lock);

#endif
