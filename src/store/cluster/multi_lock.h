/* Locks over several keys, above a store whose operations take one key each: a store of its own
 * that has the same interface, and asks the other one about key after key.
 *
 * All keys are held or none: no key is held while another one is waited for. Owners that want the
 * same keys in different orders do not wait for each other in a circle. A store that has no queue
 * ignores "queue" and "queue_only" in what it is asked: owners get the keys in no particular
 * order. */
#pragma once

#include "store/store.h"

/* Takes "single" over, and passes on the operations about one key. */
struct store *multi_lock_open(struct loop *loop, struct store *single);
