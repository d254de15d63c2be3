/* A lock store in the tables of an SQL database (store/sql/dialect.h). Each operation reads a
 * lock's row with the server's clock, decides (store/sql/row.h), and writes the row back if its
 * version is still the same; otherwise it begins anew. No lock of the database is held between
 * statements. */
#ifndef RLOCK_STORE_SQL_STORE_H
#define RLOCK_STORE_SQL_STORE_H

#include "store/store.h"

struct sql_dialect;

struct store *sql_store_open(struct loop *loop, const struct store_address *address,
                             const struct sql_dialect *dialect, char *fault, size_t size);

#endif
