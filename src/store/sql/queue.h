/* Statements about places in the queues of the keys of one operation, and about who is called.
 * Pure. */
#ifndef RLOCK_STORE_SQL_QUEUE_H
#define RLOCK_STORE_SQL_QUEUE_H

#include "store/sql/dialect.h"
#include "store/sql/reading.h"
#include "store/store.h"

/* Whether the reading found places that need not be written now. listens: it is not asked again
 * soon. */
bool sql_queue_holds(const struct sql_reading *reading, bool listens);
/* Takes places, or keeps them. */
void sql_queue_join(struct sql_text *text, const struct sql_reading *reading,
                    const struct lock_request *request);
/* Takes the owner out, and what has long been dead. NULL: everybody. */
void sql_queue_leave(struct sql_text *text, const struct sql_reading *reading, const char *owner);

/* Where the dialect notifies, behind another statement: calls those who are next. */
void sql_queue_call(struct sql_text *text, const struct sql_reading *reading);
/* Listens for the owner's call alone. */
void sql_queue_listen(struct sql_text *text, const char *owner);

#endif
