/* How many replicas must have a grant before it counts: the WAIT that goes out behind a script, in
 * the same write, and the verdict on its reply. */
#pragma once

#include "store/member.h"

struct redisReply;
struct redis_session;

struct redis_replicas {
    enum replicas rule;
    unsigned number; /* with REPLICAS_COUNT */
    int known;       /* how many the server has had since it was first connected to; -1: unknown */
    char server[MEMBER_SERVER_SIZE]; /* which one that is; "": it does not tell */
    unsigned asked;                  /* of the WAIT that is under way */
};

/* Whether the user's rule depends on how many replicas the server has. */
bool redis_replicas_are_counted(const struct redis_replicas *replicas);

/* Takes what a greeting says: which server it is ("": it does not tell), and how many replicas it
 * has now, or -1. Those of another server than before do not count any more. */
void redis_replicas_greet(struct redis_replicas *replicas, const char *server, int count);

/* Whether enough replicas can be waited for, right after the greeting. If not, why, in *answer:
 * UNKNOWN. */
bool redis_replicas_possible(const struct redis_replicas *replicas, struct answer *answer);

/* Adds WAIT to the session's next batch, behind the script. ns: how long the server waits at most.
 * Returns how many replies will come to what was added. */
size_t redis_replicas_add(struct redis_replicas *replicas, struct redis_session *session,
                          int64_t ns);

enum replicas_verdict {
    REPLICAS_HAVE_IT,
    REPLICAS_MORE, /* there are more replicas than was known: send it again */
    REPLICAS_LACK_IT,
};

/* Judges the replies to what was added. REPLICAS_LACK_IT: why, in *answer: UNKNOWN, but the server
 * itself has done it (maybe_done). */
enum replicas_verdict redis_replicas_hear(struct redis_replicas *replicas,
                                          struct redisReply *const *replies, struct answer *answer);
