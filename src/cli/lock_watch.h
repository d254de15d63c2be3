/* Locks that are surveyed again and again: the last survey, and, during an outage of the store,
 * since when and why it is out of reach. */
#pragma once

#include <time.h>

#include "base/strbuf.h"
#include "cli/query.h"
#include "net/loop.h"

struct lock_watch {
    struct query *query;           /* the caller's, which closes it */
    struct survey_request request; /* the caller's, without callbacks */
    /* Called when the store has not answered for "patience" ns, and again until it does: it is out
     * of reach then. NULL: it is waited for. */
    void (*silent)(void *arg);
    int64_t patience;
    void *arg;

    struct lock_list list;     /* the last survey, sorted by key */
    time_t seen;               /* its time; 0: there is none */
    struct moment seen_at;     /* the same */
    int64_t gone;              /* ns since the survey before it */
    bool away;                 /* since then there was no answer, or a refusal */
    char why[FAULT_SIZE];      /* the reason */
    struct loop_timer silence; /* armed while the store is asked */
};

enum lock_watch_result {
    LOCK_WATCH_SEEN,
    LOCK_WATCH_AWAY,    /* the store is out of reach; the list stays as it was */
    LOCK_WATCH_REFUSED, /* the store refuses, or the loop was stopped (cli/query.h) */
};

/* Surveys the locks, and replaces the list; also if a KEY is not a lock, although that is a
 * refusal. The caller frees the list. */
enum lock_watch_result lock_watch_ask(struct lock_watch *watch, struct answer *answer);

/* Prints "3 locks, 2 waiting, 1 pattern paused". */
void lock_watch_summary(const struct lock_watch *watch, struct strbuf *out);
/* Prints, without a newline, the time and the summary, or since when and why the store is out of
 * reach. */
void lock_watch_heading(const struct lock_watch *watch, struct strbuf *out);
