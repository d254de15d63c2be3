/* Acquires locks in a database, and waits for them. */
#ifndef RLOCK_STORE_SQL_ACQUIRE_H
#define RLOCK_STORE_SQL_ACQUIRE_H

#include "store/sql/operation.h"

/* store_acquire() (store/store.h). */
void sql_acquire(struct store *base, const struct lock_request *request, struct moment until,
                 store_done *done, void *arg);

/* Gives the owner's holders, which are in all rows, the lease of the request (0: the one that each
 * has), from when the rows were read, and grants once that is written. */
void sql_extend_all(struct sql_store *store, enum sql_mirror_need need);

/* The store's timer: has a waiter look again, or sends it to sleep. */
void sql_poll_due(struct loop_timer *timer);

#endif
