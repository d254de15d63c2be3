/* What a Redis server's replies mean, as answers of a store. Pure: no connection, no clock. */
#ifndef RLOCK_REDIS_ANSWER_H
#define RLOCK_REDIS_ANSWER_H

#include "store.h"

struct redisReply;
struct script;

/* The reply of a lock's script as an answer; *extra, if not NULL, takes what only Redis stores need. A
 * reply of any other form is UNKNOWN, CAUSE_UNFIT. */
struct redis_extra {
    int64_t now_ms;      /* the server's clock, 0 if the reply did not say */
    const char *places;  /* queued: to be sent with the next try; the reply's */
    bool stale;          /* refused for having come too late: try again with a new clock reading */
    const char *granted; /* the word for it; NULL: it was not */
    size_t grants;       /* and of how many keys a grant tells */
};
void redis_answer_script(const struct redisReply *reply, struct answer *answer,
                         struct redis_extra *extra);

/* Whether what was granted is what a call of the script about so many keys asks for. */
bool redis_answer_belongs(const struct script *script, size_t keys,
                          const struct redis_extra *extra);

/* The reply of inspect.lua as a view, borrowed by "each" for the call. Fills *answer: GRANTED, or why
 * not. Nothing is reported for a key that is no lock of ours. */
void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer);

#endif
