#include "run/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/ancestor.h"

/* A shorter wait is not reported, nor is an ancestor in it. */
#define QUIET_NS (1 * NS_PER_SEC)

/* Returns how many ns ago the latest refusal came. */
static int64_t age_of(const struct waiting *waiting)
{
    return waiting->refused_at.ns ? moment_until(waiting->refused_at, loop_now(waiting->loop)) : 0;
}

/* Returns which of the keys is refused, from 1. */
static unsigned blocked_key(const struct waiting *waiting, const struct answer *refusal)
{
    return refusal->refused.key < waiting->request->key_count ? (unsigned)refusal->refused.key + 1
                                                              : 1;
}

/* The timer: shows the wait as it is now, and again when what is shown should change, as a line on
 * a terminal counts seconds. */
static void show_wait_now(struct loop_timer *timer)
{
    const struct waiting *waiting = timer->owner;
    waiting->refusal->age = age_of(waiting);
    int64_t pause =
        waiting->events->show_wait(waiting->events->arg, waiting->refusal, waiting->announced);

    if (pause > 0)
        loop_arm(waiting->loop, timer, moment_plus(loop_now(waiting->loop), pause));
}

/* Whether this process waits for what it is a part of: an ancestor of it holds the lock, and
 * RLOCK_OWNER, which would make it nest in that, was lost on the way. */
static bool waits_for_itself(const struct waiting *waiting, const struct answer *refusal)
{
    const struct lock_party *holder = refusal->refused.holder;
    /* Another holder of a semaphore may make room, and so may those of other keys where some of
     * them are enough ("take"). */
    bool alone = (refusal->refused.holders <= 1 || waiting->request->mode != LOCK_LIMIT) &&
                 !waiting->request->take;

    return alone && holder && !holder->kept &&
           ancestor_is(&holder->who, holder->age_ms * NS_PER_MS + age_of(waiting));
}

void waiting_init(struct waiting *waiting, struct loop *loop, const struct acquire_request *request,
                  const struct run_events *events, bool *announced)
{
    *waiting = (struct waiting){.loop = loop,
                                .request = request,
                                .events = events,
                                .announced = announced,
                                .began = moment_now()};
    waiting->timer = (struct loop_timer){.fire = show_wait_now, .owner = waiting};
}

/* Tells the user, once, of a limit that is not the one asked for: the limit that the store keeps
 * counts for all clients. key: from 1. */
static void tell_limit(struct waiting *waiting, unsigned key, unsigned limit)
{
    if (!waiting->request->limit || waiting->request->limit == limit || waiting->told_of_limit)
        return;
    waiting->told_of_limit = true;
    run_tell(waiting->events,
             &(struct run_news){.event = RUN_OTHER_LIMIT, .key = key, .number = limit});
}

void waiting_note_refusal(struct waiting *waiting, const struct answer *refusal)
{
    if (refusal->refused.requeued)
        run_tell(waiting->events,
                 &(struct run_news){.event = RUN_REQUEUED, .number = refusal->refused.position});
    if (refusal->refused.limited)
        tell_limit(waiting, blocked_key(waiting, refusal), refusal->refused.limit);
    if (!waiting->refusal)
        waiting->refusal = mem_zeroed(sizeof *waiting->refusal);
    answer_keep(&waiting->refusal->kept, refusal);
    waiting->refused_at = loop_now(waiting->loop);
    if (!waiting->refused)
        loop_arm(waiting->loop, &waiting->timer, moment_plus(waiting->refused_at, QUIET_NS));
    waiting->refused = true;
    /* Whether the command waits for itself is examined once a holder. */
    const char *owner = refusal->refused.holder ? refusal->refused.holder->owner : "";
    if (strcmp(waiting->examined, owner) == 0 ||
        moment_until(waiting->began, waiting->refused_at) < QUIET_NS)
        return;
    strcpy(waiting->examined, owner);
    if (waiting->told_of_ancestor || !waits_for_itself(waiting, refusal))
        return;
    waiting->told_of_ancestor = true;
    run_tell(waiting->events, &(struct run_news){.event = RUN_OWN_ANCESTOR,
                                                 .key = blocked_key(waiting, refusal),
                                                 .number = refusal->refused.holder->who.pid});
}

void waiting_hide(const struct waiting *waiting)
{
    if (waiting->refused)
        waiting->events->hide_wait(waiting->events->arg);
}

void waiting_end(struct waiting *waiting)
{
    loop_disarm(waiting->loop, &waiting->timer);
    waiting_hide(waiting);
    waiting->refused = false;
}

void waiting_acquired(struct waiting *waiting, struct lease lease, const struct lock_grant *grants)
{
    const struct run_news news = {.event = RUN_WAITED,
                                  .duration = moment_until(waiting->began, moment_now())};

    waiting_end(waiting);
    waiting->events->granted(waiting->events->arg, grants);
    if (*waiting->announced)
        run_tell(waiting->events, &news);
    *waiting->announced = false;
    for (unsigned i = 0; i < waiting->request->key_count; i++) {
        if (grants[i].absent)
            continue;
        run_tell(waiting->events, &(struct run_news){.event = RUN_ACQUIRED,
                                                     .key = i + 1,
                                                     .number = (int64_t)grants[i].fence,
                                                     .slot = grants[i].slot});
        if (grants[i].limit)
            tell_limit(waiting, i + 1, grants[i].limit);
    }
    if (lease.length < waiting->request->lease) /* the store may have a limit for leases */
        run_tell(waiting->events,
                 &(struct run_news){.event = RUN_SHORT_LEASE, .duration = lease.length});
}

void waiting_describe_refusal(struct waiting *waiting, const struct answer *refusal,
                              struct moment refused_at, struct run_refusal *out)
{
    waiting->refused_at = refused_at;
    answer_keep(&out->kept, refusal);
    out->age = age_of(waiting);
    out->ancestor = waits_for_itself(waiting, refusal);
}

void waiting_free(struct waiting *waiting)
{
    free(waiting->refusal);
}
