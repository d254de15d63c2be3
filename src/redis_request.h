/* What the scripts of a lock are called with. Each is begun and has its arguments then. Pure. */
#ifndef RLOCK_REDIS_REQUEST_H
#define RLOCK_REDIS_REQUEST_H

#include "redis_call.h"
#include "store.h"

/* A place in the queue is kept this long after the last call of its waiter. */
#define QUEUE_PATIENCE_NS (7 * NS_PER_SEC)

/* What is asked of a server besides. */
struct redis_terms {
    char *marker; /* a key that tells for how long the server remembers; NULL */
    bool grace;   /* and it is to say whether it may have forgotten locks */
    bool member;  /* of a quorum: how long it has been one */
};

/* Arguments that are filled in at the moment of sending; acquire.lua, release.lua and a claim of renew.lua have the first
 * one at the same place. */
enum { REDIS_ARGUMENT_NOT_AFTER = 3, REDIS_ARGUMENT_PLACES = 4 };

void redis_request_acquire(struct redis_call *call, const struct redis_terms *terms,
                           const char *prefix, const struct lock_request *request);
void redis_request_renew(struct redis_call *call, const struct redis_terms *terms,
                         const char *prefix, const struct lock_request *request);
/* uncertain: an acquisition of this owner may be under way somewhere; it is barred for a minute. */
void redis_request_release(struct redis_call *call, const struct redis_terms *terms,
                           const char *prefix, const struct lock_request *request, bool uncertain);
void redis_request_force(struct redis_call *call, const char *prefix,
                         const struct force_request *request);
void redis_request_latch(struct redis_call *call, const char *prefix,
                         const struct latch_request *request);
void redis_request_mark(struct redis_call *call, const struct redis_terms *terms, bool force);

#endif
