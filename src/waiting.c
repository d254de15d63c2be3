/* The waiting line. */
#include "waiting.h"
#include "duration.h"
#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}

char *waiting_describe(const struct lock_party *party, int64_t later, char *out, size_t size)
{
    const struct identity *who = &party->who;
    char age[32];

    duration_print(party->age_ms * NS_PER_MS + later, age, sizeof age);
    out[0] = '\0';
    if (who->user[0])
        append(out, size, " by %.60s@%.80s", who->user, who->host);
    else if (who->host[0])
        append(out, size, " on %.80s", who->host);
    if (who->pid)
        append(out, size, " pid %ld", who->pid);
    if (who->command[0])
        append(out, size, " (%.40s)", who->command);
    append(out, size, " for %s", age);
    if (who->label[0])
        append(out, size, ", label %.200s", who->label);
    return memmove(out, out + 1, strlen(out));
}

/* Who is in the way: "held by …" or the like, or "instead" where nobody is. */
static void describe_obstacle(const struct waiting *waiting, const struct answer *refusal,
                              const char *instead, char *out, size_t size)
{
    const struct lock_party *one = &refusal->holder;
    int64_t later = waiting->heard.ns ? moment_until(waiting->heard, loop_now(waiting->loop)) : 0;
    unsigned limit = waiting->request->limit;
    char holder[480];

    if (refusal->holders > 1 && one->mode == LOCK_LIMIT && refusal->holders >= (int64_t)limit)
        snprintf(out, size, "all %u slots are taken", limit);
    else if (refusal->holders > 1)
        snprintf(out, size, "held by %" PRId64 " %s", refusal->holders,
                 one->mode == LOCK_SHARED ? "readers" : "holders");
    else if (refusal->cause == CAUSE_GRACE)
        store_print_grace(refusal->grace_ms - later / NS_PER_MS, out, size);
    else if (one->owner[0])
        snprintf(out, size, "held %s", waiting_describe(one, later, holder, sizeof holder));
    else
        snprintf(out, size, "%s", instead);
}

static const char *blocked_key(const struct waiting *waiting, const struct answer *refusal)
{
    const struct lock_request *request = waiting->request;
    return request->keys[refusal->key < request->key_count ? refusal->key : 0];
}

static void compose(void *arg, char *out, size_t size)
{
    const struct waiting *waiting = arg;
    const struct answer *refusal = &waiting->refusal;
    bool changing = refusal->position == 1 || waiting->request->mode == LOCK_EXCLUSIVE;
    char obstacle[512];

    snprintf(out, size, "waiting for %.120s", blocked_key(waiting, refusal));
    if (waiting->request->key_count > 1)
        append(out, size, " (one of %.120s)", waiting->title);
    describe_obstacle(waiting, refusal,
                      changing ? "which is about to change hands" : "others come first", obstacle,
                      sizeof obstacle);
    append(out, size, "%s %s", refusal->cause == CAUSE_GRACE ? ":" : ",", obstacle);
    if (refusal->position == 1)
        append(out, size, "; you are next");
    else if (refusal->position > 1)
        append(out, size, "; you are number %" PRId64 " in the queue", refusal->position);
    else
        append(out, size, "; a quorum has no queue");
}

void waiting_init(struct waiting *waiting, struct loop *loop, const struct lock_request *request,
                  const char *title, bool silent)
{
    *waiting = (struct waiting){.loop = loop, .request = request, .title = title};
    notice_init(&waiting->notice, loop, silent, compose, waiting);
}

void waiting_heard(struct waiting *waiting, const struct answer *refusal)
{
    waiting->refusal = *refusal;
    waiting->heard = loop_now(waiting->loop);
    notice_begin(&waiting->notice);
}

void waiting_end(struct waiting *waiting)
{
    notice_end(&waiting->notice);
}

char *waiting_refused(const struct waiting *waiting, const struct answer *refusal, char *out,
                      size_t size)
{
    char obstacle[512];

    describe_obstacle(waiting, refusal, "others are first in the queue", obstacle, sizeof obstacle);
    snprintf(out, size, "%.100s: not acquired: %s", blocked_key(waiting, refusal), obstacle);
    return out;
}
