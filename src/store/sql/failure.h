/* What a statement that has failed is told as. Pure. */
#ifndef RLOCK_STORE_SQL_FAILURE_H
#define RLOCK_STORE_SQL_FAILURE_H

#include "store/sql/driver.h"
#include "store/store.h"

/* Makes *answer UNKNOWN for why a statement has failed. address: which server. */
void sql_answer_failure(struct answer *answer, const struct store_address *address,
                        const struct sql_reply *reply);

#endif
