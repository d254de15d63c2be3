/* Locks that are looked at again and again: what was seen last, and, during an outage of the store,
 * since when and why it is out of reach. */
#ifndef RLOCK_CLI_LOCK_WATCH_H
#define RLOCK_CLI_LOCK_WATCH_H

#include <stdio.h>
#include <time.h>

#include "cli/query.h"
#include "net/loop.h"

struct lock_watch {
    struct query *query;         /* the caller's, which closes it */
    const char *const *patterns; /* the caller's */
    size_t pattern_count;
    unsigned runs; /* of each lock, so many of the last */
    bool idle;     /* free locks as well (query.h) */
    /* Called when the store has not answered in this time, in ns, and again until it does: it is
     * out of reach then. NULL: it is waited for. */
    void (*silent)(void *arg);
    int64_t patience;
    void *arg;

    struct lock_list list;     /* as seen last; sorted by key */
    time_t seen;               /* when that was; 0: never */
    struct moment seen_at;     /* the same */
    int64_t gone;              /* ns between that and the time before */
    bool away;                 /* there was no answer since, or a refusal */
    char why[256];             /* it is away, or refuses */
    struct loop_timer silence; /* armed while it is asked */
};

enum lock_watch_result {
    LOCK_WATCH_SEEN,
    LOCK_WATCH_AWAY,    /* the store is out of reach: the list stays as it was */
    LOCK_WATCH_REFUSED, /* it does not want to, or somebody stopped the loop (cli/query.h) */
};

/* Looks once. The list is replaced by what was seen; of KEYs that are no locks, too, although that
 * is a refusal. */
enum lock_watch_result lock_watch_ask(struct lock_watch *watch, struct answer *answer);
void lock_watch_free(struct lock_watch *watch);

/* Prints "3 locks, 2 waiting, 1 pattern paused". Returns out. */
char *lock_watch_summary(const struct lock_watch *watch, char *out, size_t size);
/* Prints, without a newline, the time and the summary, or since when the store is out of reach and
 * why. */
void lock_watch_heading(const struct lock_watch *watch, FILE *out);

#endif
