/* What a Redis server's replies mean, as answers of a store. Pure: no connection, no clock. */
#ifndef RLOCK_REDIS_ANSWER_H
#define RLOCK_REDIS_ANSWER_H

#include "store.h"

struct redisReply;

/* What an error reply asks for. */
enum redis_error {
    REDIS_ERROR_NOSCRIPT, /* send the script itself */
    REDIS_ERROR_PASSING,  /* BUSY, LOADING, …: try again */
    REDIS_ERROR_READONLY, /* a replica: this server will not do, its master will */
    REDIS_ERROR_UNFIT,    /* OOM: this server will not do */
    REDIS_ERROR_DENIED,   /* NOAUTH, WRONGPASS, NOPERM, a forbidden channel */
    REDIS_ERROR_MISFIT,   /* WRONGTYPE: the key is something else */
    REDIS_ERROR_CLUSTER,  /* MOVED, ASK, CROSSSLOT: a Cluster's node; or one was asked for and is none */
    REDIS_ERROR_OTHER,
};

/* Codes are looked for as whole words anywhere: up to 6.2, errors within a script come wrapped. */
enum redis_error redis_error_class(const char *text);

/* An UNKNOWN answer for an error reply, with the server's own words in its text. */
void redis_answer_error(const char *text, struct answer *answer);
/* One for a reply that nothing of ours gives; what was asked for may have been done all the same. */
void redis_answer_senseless(struct answer *answer);

/* The latest moment that a script can count to, in ms since 1970; no server's clock shows a later one. */
#define REDIS_CLOCK_MAX (INT64_C(1) << 53)
/* As many ms can be counted in ns, with room for more. */
#define REDIS_SPAN_MAX (INT64_MAX / NS_PER_MS / 2)

/* The reply of a lock's script as an answer; *extra, if not NULL, takes what only Redis stores need. A
 * reply of any other form is UNKNOWN, CAUSE_UNFIT. */
struct redis_extra {
    int64_t now_ms;     /* the server's clock, 0 if the reply did not say */
    const char *places; /* queued: to be sent with the next try; the reply's */
    bool stale;         /* refused for having come too late: try again with a new clock reading */
};
void redis_answer_script(const struct redisReply *reply, struct answer *answer,
                         struct redis_extra *extra);

/* The reply of inspect.lua as a view, borrowed by "each" for the call. Fills *answer: GRANTED, or why
 * not. Nothing is reported for a key that is no lock of ours. */
void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer);

#endif
