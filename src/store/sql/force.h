/* Takes locks in a database away from those who hold them. */
#ifndef RLOCK_STORE_SQL_FORCE_H
#define RLOCK_STORE_SQL_FORCE_H

#include "store/sql/operation.h"

/* store_force() (store/store.h). */
void sql_force(struct store *base, const struct force_request *request, struct moment until,
               store_done *done, void *arg);

#endif
