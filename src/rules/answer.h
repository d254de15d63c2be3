/* A Redis server's replies, as answers of a store. Pure: no connection, no clock. */
#pragma once

#include "store/member.h"

struct redisReply;
struct redis_call;

/* The parts of a reply that only Redis stores need, and room for those that an answer points to. */
struct redis_extra {
    int64_t now_ms;     /* the server's clock, 0 if the reply did not say */
    const char *places; /* queued: to be sent with the next try; the reply's */
    /* The first word of the answer; NULL: an error, or not of a script. STALE: it has come too
     * late: try again with a new clock reading. */
    const char *word;
    const struct redisReply *mirrors; /* keys that the call has to name; NULL */
    size_t granted;                   /* of how many keys a grant tells */
    size_t absent;                    /* how many of those are not held */
    bool member;                      /* told as a quorum's member does: */
    struct seniority seniority;

    struct lock_grant grants[LOCK_KEYS_MAX];
    struct lock_party party; /* the holder, or the first in the queue */
    struct revocation revoked;
};

/* Makes an answer of the reply of a lock's script; it points into *extra and the reply. A reply of
 * any other form is UNKNOWN, CAUSE_UNFIT. */
void redis_answer_script(const struct redisReply *reply, struct answer *answer,
                         struct redis_extra *extra);

/* Reads "FENCE SLOT", as a lock was handed over with it. False where that cannot be a grant. */
bool redis_answer_grant(const char *text, struct lock_grant *grant);

/* Whether that call can have been answered so: by that word, and, if it was granted, for as many
 * keys as it asked for. */
bool redis_answer_belongs(const struct redis_call *call, const struct redis_extra *extra);

/* The reply of inspect.lua as a view, borrowed by "each" for the call. Fills *answer: GRANTED, or
 * why not. Nothing is reported for a key that is not a lock of ours. */
void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer);

/* The reply to HMGET of the pauses of GLOBs, as pauses.lua keeps them, at that time of the server,
 * in ms: each that is not over as the view of a lock whose key is the GLOB, borrowed by "each" for
 * the call. Lines that cannot be read are left out. */
void redis_answer_pauses(const struct redisReply *reply, int64_t now,
                         void (*each)(void *arg, const struct lock_view *view), void *arg);

/* The rest of a long queue behind the part in that reply: the tickets to ask for. */
struct redis_rest {
    int64_t from, to; /* both 0: nothing */
};
struct redis_rest redis_answer_rest(const struct redisReply *reply);
