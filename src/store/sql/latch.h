/* What a database keeps of a count-down latch, and the rules that it follows. A latch is a row of
 * the same table as locks (store/sql/row.h), with a state of another kind, so that one KEY is never
 * both. It is read, changed here, on a copy, and written back in the same way. Pure.
 *
 * The state is text: "latch/1 FENCE", the last fence that the KEY had as a lock, a line of
 *     LEFT NUMBER SINCE EXPIRES WORD
 * and a line for each count-down, COUNT d:ID, or COUNT r:WORD of a call that gave no id. Times are
 * in us since 1970 by the server's clock. Programs that know of locks alone take such a row for a
 * damaged one, and leave it as it is.
 *
 * A latch that has expired is one no more: its row is free, for a lock or another latch. */
#ifndef RLOCK_STORE_SQL_LATCH_H
#define RLOCK_STORE_SQL_LATCH_H

#include "store/store.h"
#include <stddef.h>
#include <stdio.h>

#define US_PER_MS INT64_C(1000)

#define SQL_LATCH_MARK "latch/"
/* The two lines before the count-downs are no longer than that. */
#define SQL_LATCH_HEAD 200
/* Bytes of a state: some 20,000 count-downs without an id. */
#define SQL_LATCH_MAX (1U << 20)
/* With its NUL. */
#define SQL_LATCH_CHANNEL 32

struct sql_count {
    char *field;   /* d:ID or r:WORD */
    int64_t count; /* how many it has counted */
};

struct sql_latch {
    int64_t left, number;
    int64_t since, expires; /* us */
    char word[LATCH_WORD_SIZE];
    struct sql_count *counts; /* in the order in which they came */
    size_t count;
};

/* Reads what stands behind the first line; NULL if it makes no sense. head: the count-downs may be
 * cut off, and are not read. Freed by sql_latch_free(). */
struct sql_latch *sql_latch_read(const char *text, bool head);
void sql_latch_print(const struct sql_latch *latch, FILE *out);
/* NULL: nothing happens. */
void sql_latch_free(struct sql_latch *latch);

/* Does what is asked for with the latch of a row that is no lock, and sets the answer. NULL: there
 * is none. */
enum sql_latch_change {
    SQL_LATCH_SAME,    /* the row need not be written */
    SQL_LATCH_CHANGED, /* it has to be: a grant is true only then */
    SQL_LATCH_CALLS,   /* and those who wait for the latch are to be called */
};
enum sql_latch_change sql_latch_apply(struct sql_latch **latch, const struct latch_request *request,
                                      int64_t now, struct answer *answer);
/* Refuses it. */
enum sql_latch_change sql_latch_refuse(struct answer *answer, enum cause cause, const char *text);
/* As others see it. Not the ids. */
struct latch_state sql_latch_state(const struct sql_latch *latch, int64_t now);

/* Why a lock cannot be a latch, and the reverse. */
#define SQL_LATCH_IS_LOCK "the key is a lock; rlock status shows it"
#define SQL_LATCH_IS_ONE  "the key is a latch; rlock latch status shows it"

/* The channel on which those are called who wait for the latch of that name in that table, NULL for
 * the default. Others may have the same, seldom. Returns channel. */
const char *sql_latch_channel(const char *table, const char *name, char channel[SQL_LATCH_CHANNEL]);

#endif
