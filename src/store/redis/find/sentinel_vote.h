/* The vote of several Sentinels. Pure.
 *
 * A Sentinel that was cut off, or slept through a failover, names a former master. So more than
 * half of all Sentinels must say the same: those of the URL, and those that they tell of.
 * Unreachable Sentinels count, also if their host refuses the connection: a firewall does so as
 * well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* No deployment has more. */
#define SENTINELS_MAX    64
#define SENTINEL_ID_SIZE 48

enum sentinel_said {
    SENTINEL_ASKED,   /* has not answered yet */
    SENTINEL_NAMES,   /* names a master */
    SENTINEL_UNKNOWN, /* knows no master of that name */
    SENTINEL_SILENT,  /* no way to it, or no answer: may be running */
    SENTINEL_DENIED,  /* wants other credentials */
    SENTINEL_UNFIT,   /* is not a Sentinel */
};

struct sentinel_word {
    enum sentinel_said said;
    bool in_url;
    bool named_by_other; /* at that address, by another Sentinel */
    /* The id that the Sentinel says itself, and that another one said last; "": not known. */
    char id[SENTINEL_ID_SIZE], told_id[SENTINEL_ID_SIZE];
    char host[256]; /* of the master named */
    int port;
    char why[SAID_SIZE]; /* not NAMES: for the user; UNKNOWN: the masters it does know, or "" */
};

/* The Sentinels that are known, and the latest word of each. */
struct sentinel_facts {
    size_t count;
    struct sentinel_host {
        char name[256];
        int port;
    } hosts[SENTINELS_MAX];
    struct sentinel_word words[SENTINELS_MAX];
};

/* Whether it counts: it is in the URL, or those that were asked last told of it. */
static inline bool sentinel_counts(const struct sentinel_word *word)
{
    return word->in_url || word->named_by_other;
}
/* The id that it is known by; "": none. */
static inline const char *sentinel_id(const struct sentinel_word *word)
{
    return word->id[0] ? word->id : word->told_id;
}
/* Whether it names this master. */
bool sentinel_names(const struct sentinel_word *word, const char *host, int port);
/* Whether it has a vote: it names a master, or says that it knows none of that name. */
bool sentinel_votes(const struct sentinel_word *word);

enum sentinel_outcome {
    SENTINELS_OPEN,        /* those that have not answered yet decide */
    SENTINELS_NAME,        /* a master */
    SENTINELS_DO_NOT_KNOW, /* a master of that name */
    SENTINELS_DIFFER,      /* and no master has enough votes */
    SENTINELS_TOO_FEW,     /* have answered */
    SENTINELS_DENY,
    SENTINELS_UNFIT,
    SENTINELS_SILENT,
};

struct sentinel_vote {
    enum sentinel_outcome outcome;
    size_t speaker; /* one of those that said so; TOO_FEW: one that names a master, if any does */
    size_t votes;   /* NAME, DO_NOT_KNOW: how many said so; otherwise how many have answered */
    size_t all;     /* how many Sentinels there are, as far as is known */
};

/* Counts the votes among these words. Once the outcome is not OPEN any more, later words do not
 * change the master. */
struct sentinel_vote sentinel_vote(const struct sentinel_word *words, size_t count);
