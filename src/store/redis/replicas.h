/* How many replicas have to have what was granted before it counts: the WAIT that goes out behind a
 * script, in the same write, and what is made of the reply. */
#ifndef RLOCK_STORE_REDIS_REPLICAS_H
#define RLOCK_STORE_REDIS_REPLICAS_H

#include "store/store.h"

struct redisReply;
struct redis_session;

struct redis_replicas {
    enum replicas rule;
    unsigned number; /* with REPLICAS_COUNT */
    int known;       /* how many the server has had since it was connected to; -1: not known */
    unsigned asked;  /* of the WAIT that is under way */
};

/* Whether they can be waited for, right after the greeting. If not, why, in *answer: UNKNOWN. */
bool redis_replicas_possible(const struct redis_replicas *replicas, struct answer *answer);

/* Adds to the batch what comes behind the script: to be answered within "ns". Returns the number of
 * replies that are due to it. */
size_t redis_replicas_add(struct redis_replicas *replicas, struct redis_session *session,
                          int64_t ns);

enum replicas_verdict {
    REPLICAS_HAVE_IT,
    REPLICAS_MORE, /* there are more of them than was known: ask again */
    REPLICAS_LACK_IT,
};

/* Judges those replies. Why they lack it, in *answer: UNKNOWN, but done. */
enum replicas_verdict redis_replicas_hear(struct redis_replicas *replicas,
                                          struct redisReply *const *replies, struct answer *answer);

#endif
