/* Writing locks back: one statement for all keys of an operation, with the rows of their mirrors.
 * It changes all of them, or nothing where one of ours has another version than the one that was
 * read, or a mirror is not as it needs to be: then it fails, or says that it has changed no row.
 * However late it is executed, it cannot change some of them alone. Pure. */
#ifndef RLOCK_STORE_SQL_SWAP_H
#define RLOCK_STORE_SQL_SWAP_H

#include "store/sql/dialect.h"
#include "store/sql/reading.h"

/* What has to be true of the mirrors that the owner shares; of the others nothing is needed: where
 * such a one is held by whom our row says, it lasts as long as the leases do. */
enum sql_mirror_need {
    MIRROR_ANY,  /* nothing, as in a release */
    MIRROR_FREE, /* it is free or ours, and becomes ours */
    MIRROR_OURS, /* it is ours, and stays it */
};

/* Adds the statement. With mirrors, each row has to be there. False if a lock has too many holders
 * for a row. */
bool sql_swap(struct sql_text *text, const struct sql_reading *reading, const char *owner,
              enum sql_mirror_need need);
/* Adds the statement that makes those of our rows that are not there yet, with nobody in them;
 * false, and nothing, where all are. */
bool sql_swap_make(struct sql_text *text, const struct sql_reading *reading);

#endif
