/* WAIT behind a script. It counts the replicas that have all that this connection has written; so a script
 * whose answer is to count must write on each of its ways to that answer, or WAIT speaks of nothing. */
#include "redis_replicas.h"
#include "redis_error.h"
#include "redis_greeting.h"
#include "redis_link.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static unsigned needed(const struct redis_replicas *replicas)
{
    unsigned known = replicas->known > 0 ? (unsigned)replicas->known : 0;

    switch (replicas->rule) {
    case REPLICAS_NONE: return 0;
    case REPLICAS_COUNT: return replicas->number;
    case REPLICAS_MAJORITY: return known / 2 + 1;
    case REPLICAS_ALL:
        return known ? known : 1; /* that there are none is no reason to wait for none */
    }
    return 0;
}

static bool depends_on_known(const struct redis_replicas *replicas)
{
    return replicas->rule == REPLICAS_MAJORITY || replicas->rule == REPLICAS_ALL;
}

static void fail(struct answer *answer, enum cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct answer *answer, enum cause cause, const char *fmt, ...)
{
    va_list args;

    *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    va_start(args, fmt);
    vsnprintf(answer->text, sizeof answer->text, fmt, args);
    va_end(args);
}

bool redis_replicas_possible(const struct redis_replicas *replicas, struct answer *answer)
{
    unsigned wanted = needed(replicas);

    if (replicas->known < 0 &&
        depends_on_known(replicas)) /* a user without ROLE passes the greeting */
        fail(answer, CAUSE_DENIED, "no right to ask for the number of replicas (ROLE)");
    else if (replicas->known == 0 && wanted > 0)
        fail(answer, CAUSE_UNFIT, "the server has no replicas, and --replicas asks for some");
    else if (replicas->known >= 0 && wanted > (unsigned)replicas->known)
        fail(answer, CAUSE_UNFIT, "the server has %d of the %u replicas that --replicas asks for",
             replicas->known, wanted);
    else
        return true;
    return false;
}

size_t redis_replicas_add(struct redis_replicas *replicas, struct redis_link *link, int64_t ns)
{
    char count[16], time[24];
    const char *wait[] = {"WAIT", count, time}, *role[] = {"ROLE"};
    int64_t ms = ns / NS_PER_MS;

    replicas->asked = needed(replicas);
    snprintf(count, sizeof count, "%u", replicas->asked);
    snprintf(time, sizeof time, "%" PRId64, ms > 0 ? ms : 1); /* 0 would be for ever */
    redis_link_add(link, 3, wait, NULL);
    if (!depends_on_known(replicas))
        return 1;
    redis_link_add(link, 1, role, NULL);
    return 2;
}

static void take_error(const redisReply *reply, struct answer *answer)
{
    struct answer told = {0};

    if (reply->type == REDIS_REPLY_ERROR)
        redis_error_answer(reply->str, &told);
    fail(answer, told.verdict == VERDICT_UNKNOWN && told.cause ? told.cause : CAUSE_UNFIT,
         "the server does not wait for its replicas: %.180s",
         reply->type == REDIS_REPLY_ERROR ? reply->str : "its answer makes no sense");
}

enum replicas_verdict redis_replicas_hear(struct redis_replicas *replicas,
                                          struct redisReply *const *replies, struct answer *answer)
{
    const redisReply *wait = replies[0];
    int64_t have = wait->type == REDIS_REPLY_INTEGER ? wait->integer : -1;

    /* One that has left is missed: perhaps it is a master by now, and this one is not any more. */
    int told = depends_on_known(replicas) ? redis_greeting_replicas(replies[1]) : -1;
    if (told > replicas->known)
        replicas->known = told;
    unsigned wanted = needed(replicas);
    if (have >= (int64_t)wanted)
        return REPLICAS_HAVE_IT;
    if (have >= (int64_t)replicas->asked)
        return REPLICAS_MORE;
    if (have >= 0)
        fail(answer, CAUSE_NOT_READY, "only %" PRId64 " of %u replicas %s it", have, wanted,
             have == 1 ? "has" : "have");
    else
        take_error(wait, answer);
    answer->maybe_done = true;
    return REPLICAS_LACK_IT;
}
