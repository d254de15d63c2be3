/* Findings about a lock store, each with what to do about it. Pure. */
#ifndef RLOCK_DIAGNOSIS_H
#define RLOCK_DIAGNOSIS_H

#include "facts.h"

enum level {
    LEVEL_FINE,
    LEVEL_NOTE,    /* good to know; nothing has to be done */
    LEVEL_WARNING, /* locks work, but may be lost, or not all of rlock works */
    LEVEL_UNFIT,
};

struct finding {
    const char *check; /* a word that stays: "eviction" */
    enum level level;
    char text[300];
    char advice[300]; /* "" if nothing is to be done */
};

#define DIAGNOSIS_MAX 24

struct diagnosis {
    struct finding findings[DIAGNOSIS_MAX];
    size_t count;
    enum level worst;
};

/* One server that was looked at. */
struct patient {
    char name[300]; /* its URL, without password */
    struct server_facts facts;
    struct diagnosis diagnosis;
};

/* Adds a finding; advice: "" if nothing is to be done. */
void diagnosis_add(struct diagnosis *diagnosis, const char *check, enum level level,
                   const char *advice, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* What came of taking, renewing and releasing a lock there. */
struct trial {
    bool granted;
    bool held_by_other; /* of two doctors, only one can have it */
    char fault[256];    /* why not */
    int64_t acquire_ns, renew_ns, release_ns;
};
void diagnosis_of_trial(const struct trial *trial, struct diagnosis *diagnosis);

/* Several servers, of which more than half have to be fit. */
void diagnosis_of_quorum(const struct server_facts *facts, const struct diagnosis *servers,
                         size_t count, struct diagnosis *diagnosis);

/* The masters of a Cluster, all of which have to be fit, as each has keys of its own; they have "slots" of "all". */
void diagnosis_of_cluster(const struct diagnosis *servers, size_t count, unsigned slots,
                          unsigned all, struct diagnosis *diagnosis);

/* "0.12 ms", as durations so short are written nowhere else. Returns out. */
const char *diagnosis_print_ms(int64_t ns, char out[32]);

/* "fine", "note", "warning", "unfit" */
const char *level_name(enum level level);

#endif
