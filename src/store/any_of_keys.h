/* Some of several keys, the first that are free ("take"), above a store whose operations take one
 * key each. Each key is asked about on a store of its own, so that all queues are listened to at
 * the same time; whatever is not about some of several keys goes to a store that takes them all.
 *
 * An owner stands in every key's queue, and holds none of the keys while it waits. When it comes
 * first at as many free keys as it wants, it takes those, and leaves the other queues. */
#ifndef RLOCK_STORE_ANY_OF_KEYS_H
#define RLOCK_STORE_ANY_OF_KEYS_H

#include "store/store.h"

typedef struct store *any_of_keys_open_one(struct loop *loop, const struct store_address *address,
                                           char *fault, size_t size);

/* Takes "all" over. open_one: opens a store of one key; a key of its own has each while it is
 * waited for or held. Its acquisitions know "stand". */
struct store *any_of_keys_open(struct loop *loop, struct store *all, any_of_keys_open_one *open_one,
                               const struct store_address *address);

#endif
