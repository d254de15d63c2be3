/* What the answers of several Sentinels amount to. Pure.
 *
 * One that was cut off, or slept through a failover, names a master that is none any more. So what counts is
 * what more than half say of all that may be running: only those do not count whose place nobody
 * listens at. */
#ifndef RLOCK_SENTINEL_VOTE_H
#define RLOCK_SENTINEL_VOTE_H

#include <stdbool.h>
#include <stddef.h>

enum sentinel_said {
    SENTINEL_ASKED,   /* has not answered yet */
    SENTINEL_NAMES,   /* names a master */
    SENTINEL_UNKNOWN, /* knows no master of that name */
    SENTINEL_GONE,    /* does not run: its host refuses the connection */
    SENTINEL_SILENT,  /* no way to it, or no answer: may be running */
    SENTINEL_DENIED,  /* wants other credentials */
    SENTINEL_UNFIT,   /* is no Sentinel */
};

struct sentinel_word {
    enum sentinel_said said;
    char host[256]; /* of the master named */
    int port;
    char why[128]; /* not NAMES: for the user; UNKNOWN: the masters that it does know, or "" */
};

/* Whether it names this master. */
bool sentinel_names(const struct sentinel_word *word, const char *host, int port);

enum sentinel_outcome {
    SENTINELS_OPEN,        /* those who have not answered yet decide */
    SENTINELS_NAME,        /* a master */
    SENTINELS_DO_NOT_KNOW, /* a master of that name */
    SENTINELS_DIFFER,      /* and no master has enough votes */
    SENTINELS_TOO_FEW,     /* have answered */
    SENTINELS_DENY,
    SENTINELS_UNFIT,
    SENTINELS_GONE, /* none of them runs */
    SENTINELS_SILENT,
};

struct sentinel_vote {
    enum sentinel_outcome outcome;
    size_t speaker; /* one of those who said so; TOO_FEW: one who names a master, if there is one */
    size_t votes;   /* NAME, DO_NOT_KNOW: how many said so; TOO_FEW: how many have answered */
    bool
        certain; /* by more than half of all: not even one that was restarted can have another view */
};

/* Once it is not OPEN any more, later words do not change who is named. */
struct sentinel_vote sentinel_vote(const struct sentinel_word *words, size_t count);

#endif
