/* A store that fails: whether it is tried again, when, and when the user is told.
 *
 * A store that has not answered yet may be away for "server_wait". The user is told once: after a
 * second, or after three without any answer, and then once more when there is a reason. A store
 * that has answered may fail for "longest" since the first failure in a row, or since the time at
 * which it meant to serve again; a patient user waits without a limit for a store that is away, as
 * for a lock that others hold. The user is told at once, and again for another reason, but once of
 * each, and of eight at most: reasons may take turns for long. All ways in which it cannot be
 * reached are one. In both cases the user is told when the store is back. */
#pragma once

#include "net/loop.h"
#include "store/store.h"

enum { OUTAGE_REASONS_MAX = 8 };

struct outage_events {
    /* The store fails, and is tried again. */
    void (*trouble)(void *arg, const struct answer *why);
    /* after: ns since it began to be away, or was asked for the first time. Only after
     * "trouble". */
    void (*recovered)(void *arg, int64_t after);
};

struct outage {
    struct loop *loop;
    const struct outage_events *events;
    void *arg;
    int64_t longest;       /* ns that a store may be away which has answered; 0: no time */
    bool patient;          /* set by the owner if the user waits for the lock */
    bool contacted;        /* the store has answered */
    struct moment until;   /* the store is given up then */
    unsigned failures;     /* in a row */
    struct answer *latest; /* failure; NULL, or text "": there is none */
    /* After the store has answered: the hashes of the reasons that the user was told. */
    uint64_t reasons[OUTAGE_REASONS_MAX];
    size_t reason_count;
    struct answer *failure;  /* of all in a row, that which says why; NULL, or cause NONE: none */
    struct moment since;     /* the first of them; before the store has answered: the start */
    bool user_told;          /* of this outage */
    struct loop_timer start; /* armed until the user is told that the store is away at the start */
};

/* Begins with the first attempt, at "now". server_wait: ns for further ones; 0: none. longest: ns
 * that the store may be away once it has answered. The events are borrowed. */
void outage_begin(struct outage *outage, struct loop *loop, struct moment now, int64_t server_wait,
                  int64_t longest, const struct outage_events *events, void *arg);
/* Returns when an attempt that begins now must end: after "attempt" ns; before the store has
 * answered, each but the first also not long after the store is given up. */
struct moment outage_limit(const struct outage *outage, struct moment now, int64_t attempt);
/* The store has answered: ends the outage, and tells the user if it was told of it. */
void outage_answered(struct outage *outage, struct moment now);
/* Whether to try again after a failed attempt: until "server_wait" is over if the store has not
 * answered yet; after that for "longest", or, where the user waits for the lock, for as long as the
 * store is away. */
bool outage_may_pass(const struct outage *outage, struct moment now, const struct answer *why);
/* Notes a failure that may pass, and tells the user, as the head of this file says. Returns when to
 * try again. */
struct moment outage_note(struct outage *outage, struct moment now, const struct answer *why);
/* Notes the last failure: the store is given up. Returns the failure in this outage that says why
 * (store_note_failure()), with the time that the store has been away; it is the outage's. */
const struct answer *outage_give_up(struct outage *outage, struct moment now,
                                    const struct answer *why);
/* Adds to the text of the last failure for how long the store has been away. */
void outage_add_length(const struct outage *outage, struct moment now, struct answer *why);
/* Notes a failure without telling the user. Returns when to try again. */
struct moment outage_pause(struct outage *outage, struct moment now);
/* The store takes no more clients: its time begins anew, as at an answer. */
void outage_full(struct outage *outage, struct moment now);
/* The store has answered another process before, in whose place this one is: the store is given up
 * at "until". */
void outage_inherit(struct outage *outage, struct moment until);
/* Ends the pauses, and does not tell the user any more that the store is away at the start. */
void outage_end(struct outage *outage);
/* Returns the text of the latest failure; "": there is none. */
const char *outage_trouble(const struct outage *outage);
/* Does what outage_end() does, and frees the failures. */
void outage_free(struct outage *outage);
