/* The operations on latches in a database; store/sql/latch.h has the rules. */
#ifndef RLOCK_STORE_SQL_LATCHES_H
#define RLOCK_STORE_SQL_LATCHES_H

#include "store/sql/operation.h"

/* store_latch() (store/store.h). */
void sql_latch(struct store *base, const struct latch_request *request, struct moment until,
               store_done *done, void *arg);

#endif
