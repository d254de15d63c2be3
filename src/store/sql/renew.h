/* Renews the leases of locks in a database. */
#ifndef RLOCK_STORE_SQL_RENEW_H
#define RLOCK_STORE_SQL_RENEW_H

#include "store/sql/operation.h"

/* store_renew() (store/store.h). */
void sql_renew(struct store *base, const struct lock_request *request, struct moment until,
               store_done *done, void *arg);

#endif
