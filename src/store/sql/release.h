/* Releases locks in a database, and places in their queues. */
#ifndef RLOCK_STORE_SQL_RELEASE_H
#define RLOCK_STORE_SQL_RELEASE_H

#include "store/sql/operation.h"

/* store_release() (store/store.h). */
void sql_release(struct store *base, const struct lock_request *request, bool uncertain,
                 struct moment until, store_done *done, void *arg);

/* store_release_nowait() (store/store.h), without reading anything: nobody changes the row of a
 * lock that is held but its holders. While it is not known whether rows were written there is no
 * way around reading them: that takes an answer, over another connection. */
bool sql_release_nowait(struct store *base, const struct lock_request *request);

#endif
