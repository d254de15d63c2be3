/* Sends WAIT behind a script, for --replicas. WAIT counts the replicas that have all that this
 * connection has written. So a script must write something whenever it grants, or WAIT says nothing
 * about the grant. */
#include "store/redis/replicas.h"
#include "rules/error.h"
#include "store/redis/session.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns how many replicas must have a lock, by the user's rule and by how many the server has had
 * (none, if that is not known). */
static unsigned replicas_needed(const struct redis_replicas *replicas)
{
    unsigned known = replicas->known > 0 ? (unsigned)replicas->known : 0;

    switch (replicas->rule) {
    case REPLICAS_NONE: return 0;
    case REPLICAS_COUNT: return replicas->number;
    case REPLICAS_MAJORITY: return known / 2 + 1;
    case REPLICAS_ALL: return known ? known : 1; /* one at least, even if there are none */
    }
    return 0;
}

bool redis_replicas_are_counted(const struct redis_replicas *replicas)
{
    return replicas->rule == REPLICAS_MAJORITY || replicas->rule == REPLICAS_ALL;
}

/* Notes how many replicas there are now. One that has left still counts: it may be the master by
 * now, and this server not. */
static void note_count(struct redis_replicas *replicas, int count)
{
    if (count > replicas->known)
        replicas->known = count;
}

void redis_replicas_greet(struct redis_replicas *replicas, const char *server, int count)
{
    if (strcmp(replicas->server, server) != 0)
        replicas->known = -1;
    snprintf(replicas->server, sizeof replicas->server, "%s", server);
    note_count(replicas, count);
}

bool redis_replicas_possible(const struct redis_replicas *replicas, struct answer *answer)
{
    unsigned wanted = replicas_needed(replicas);

    if (replicas->known < 0 &&
        redis_replicas_are_counted(replicas)) /* a user without ROLE passes the greeting */
        answer_fail(answer, CAUSE_DENIED, "no right to ask for the number of replicas (ROLE)");
    else if (replicas->known == 0 && wanted > 0)
        answer_fail(answer, CAUSE_NOT_READY,
                    "the server has no replicas, and the lock must wait for some");
    else if (replicas->known >= 0 && wanted > (unsigned)replicas->known)
        answer_fail(answer, CAUSE_NOT_READY,
                    "the server has %d of the %u replicas that the lock must wait for",
                    replicas->known, wanted);
    else
        return true;
    return false;
}

size_t redis_replicas_add(struct redis_replicas *replicas, struct redis_session *session,
                          int64_t ns)
{
    char count[16], time[24];
    int64_t ms = ns / NS_PER_MS;

    replicas->asked = replicas_needed(replicas);
    snprintf(count, sizeof count, "%u", replicas->asked);
    snprintf(time, sizeof time, "%" PRId64, ms > 0 ? ms : 1); /* 0 would be for ever */
    REDIS_SESSION_ADD(session, "WAIT", count, time);
    if (!redis_replicas_are_counted(replicas))
        return 1;
    REDIS_SESSION_ADD(session, "ROLE");
    return 2;
}

enum replicas_verdict redis_replicas_hear(struct redis_replicas *replicas,
                                          struct redisReply *const *replies, struct answer *answer)
{
    const redisReply *wait = replies[0];
    int64_t have = wait->type == REDIS_REPLY_INTEGER ? wait->integer : -1; /* -1: an error */

    if (redis_replicas_are_counted(replicas))
        note_count(replicas, redis_greeting_replicas(replies[1]));
    unsigned wanted = replicas_needed(replicas);
    if (have >= (int64_t)wanted)
        return REPLICAS_HAVE_IT;
    if (have >= (int64_t)replicas->asked)
        return REPLICAS_MORE;
    if (have >= 0) {
        answer_fail(answer, CAUSE_NOT_READY, "only %" PRId64 " of %u replicas %s it", have, wanted,
                    have == 1 ? "has" : "have");
    } else {
        struct answer told = {0};
        if (wait->type == REDIS_REPLY_ERROR)
            redis_error_answer(wait->str, &told);
        answer_fail(answer,
                    told.verdict == VERDICT_UNKNOWN && told.cause ? told.cause : CAUSE_UNFIT,
                    "the server does not wait for its replicas: %s",
                    told.text[0] ? told.text : "its answer makes no sense");
        answer->hint = told.hint;
        memcpy(answer->said, told.said, sizeof answer->said);
    }
    answer->maybe_done = true;
    return REPLICAS_LACK_IT;
}
