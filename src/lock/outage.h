/* A store that does not answer as it should: whether it is tried again, when, and what the user is
 * told of it.
 *
 * A store that has not answered yet may be away for "server_wait". The user is told so once: after
 * a second, or after three without any answer, and then once more when there is a reason. One that
 * has answered may fail for "longest" since the first failure in a row, or since the time at which
 * it meant to serve again; a patient user waits without a limit for one that is away, as for a lock
 * that others hold. The user is told at once, and again when it fails for another reason, but
 * of each reason once, and of eight at most: reasons may take turns for long. In both cases the
 * user is told when the store is back. */
#ifndef RLOCK_LOCK_OUTAGE_H
#define RLOCK_LOCK_OUTAGE_H

#include "net/loop.h"
#include "store/store.h"

enum { OUTAGE_REASONS_MAX = 8 };

struct outage_events {
    void (*trouble)(void *arg, const struct answer *why);
    /* So many ns after it began to be away, or was asked for the first time. After "trouble"
     * alone. */
    void (*recovered)(void *arg, int64_t after);
};

struct outage {
    struct loop *loop;
    const struct outage_events *events;
    void *arg;
    int64_t longest;           /* ns */
    bool patient;              /* to be set by the owner, whose user waits for the lock */
    bool contacted;            /* the store has answered */
    struct moment until;       /* it is given up then */
    unsigned failures;         /* in a row */
    char text[256], said[192]; /* the latest failure, as in the answer; "": there is none */
    /* Of a store that has answered: the reasons that the user was told of. */
    char reasons[OUTAGE_REASONS_MAX][256];
    size_t reason_count;
    struct answer failure;   /* of all in a row, the one that says why; cause NONE: there is none */
    struct moment since;     /* the first of them; of a store that has not answered: the start */
    bool told;               /* the user was told of it */
    struct loop_timer start; /* armed until the user is told that the store is away at the start */
};

/* Begins with the first attempt, at "now". server_wait: ns in which others may follow; 0: none.
 * longest: ns. The events are borrowed. */
void outage_begin(struct outage *outage, struct loop *loop, struct moment now, int64_t server_wait,
                  int64_t longest, const struct outage_events *events, void *arg);
/* When an attempt that begins now is to end: after "attempt" ns; at the start, each but the first
 * not long after the store is given up. */
struct moment outage_limit(const struct outage *outage, struct moment now, int64_t attempt);
/* The store has answered. */
void outage_answered(struct outage *outage, struct moment now);
/* An attempt has failed: whether another one is worth it. */
bool outage_may_pass(const struct outage *outage, struct moment now, const struct answer *why);
/* An attempt has failed that may pass: tells the user. Returns when to make the next one. */
struct moment outage_note(struct outage *outage, struct moment now, const struct answer *why);
/* An attempt has failed that is the last. Returns which one in this outage says why, as
 * store_note_failure() has it, and for how long the store has been away. */
const struct answer *outage_give_up(struct outage *outage, struct moment now,
                                    const struct answer *why);
/* Adds to the text of an answer, the last one that failed, for how long the store has been away. */
void outage_add_length(const struct outage *outage, struct moment now, struct answer *why);
/* An attempt has failed of which nobody is to be told. Returns when to make the next one. */
struct moment outage_pause(struct outage *outage, struct moment now);
/* The store takes no more clients: it is given up as if it had answered anything else just now. */
void outage_full(struct outage *outage, struct moment now);
/* Of a store that has answered somebody else: it is given up at "until". */
void outage_inherit(struct outage *outage, struct moment until);
/* The user does not wait for the store any more, and is not told that it is away at the start. The
 * pauses begin anew. */
void outage_end(struct outage *outage);

#endif
