/* A keeper's lock while it is held: renewed, extended, lost. */
#include "keeper_state.h"
#include "lease.h"

#include <stdio.h>
#include <string.h>

void keeper_lose(struct keeper *keeper, const char *why)
{
    keeper->state = LOST;
    keeper->lost = true;
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    keeper->events->lost(keeper->arg, why);
}

void keeper_lease_over(struct loop_timer *timer)
{
    struct keeper *keeper = timer->owner;
    char why[300];

    snprintf(why, sizeof why, "not renewed in time%s%s", keeper->trouble[0] ? ": " : "",
             keeper->trouble);
    keeper_lose(keeper, why);
}

static void hold_from(struct keeper *keeper, struct moment sent)
{
    int64_t lease = keeper->plan.request.lease;

    keeper->failures = 0;
    keeper->trouble[0] = '\0';
    loop_arm(keeper->loop, &keeper->end, lease_end(sent, lease));
    if (keeper->plan.renew)
        keeper_schedule(keeper, lease_renew_at(sent, lease));
    else
        loop_disarm(keeper->loop, &keeper->next);
}

void keeper_begin_holding(struct keeper *keeper, const struct lock_grant *grants)
{
    keeper->state = HELD;
    memcpy(keeper->grants, grants, sizeof keeper->grants);
    hold_from(keeper, keeper->sent);
    keeper->events->held(keeper->arg, keeper->end.due, grants);
}

/* Of several keys, says which one was lost. */
void keeper_describe_loss(const struct keeper *keeper, const struct answer *answer, char *why,
                          size_t size)
{
    const struct lock_party *now = &answer->holder;
    const struct lock_request *request = &keeper->plan.request;
    bool several = request->key_count > 1 && answer->key < request->key_count;
    int used = snprintf(why, size, "%.80s%s", several ? request->keys[answer->key] : "",
                        several ? ": " : "");

    why += used;
    size -= (size_t)used;
    if (answer->cause == CAUSE_MISFIT)
        snprintf(why, size, "%s", answer->text);
    else if (now->owner[0] && now->who.host[0])
        snprintf(why, size, "the store has given it to %.60s@%.80s pid %ld", now->who.user,
                 now->who.host, now->who.pid);
    else if (now->owner[0])
        snprintf(why, size, "the store has given it to another holder");
    else
        snprintf(why, size, "the store does not have it any more");
}

static void renewed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;
    char why[400];

    keeper->busy = false;
    keeper_note_stray(keeper, answer); /* it may claim what the store has forgotten */
    if (keeper->state == RELEASING) {
        keeper_send_release(keeper);
        return;
    }
    if (keeper->state != HELD)
        return; /* lost meanwhile */
    if (answer->verdict == VERDICT_GRANTED) {
        if (keeper->plan.renew)
            hold_from(keeper, keeper->sent);
        keeper->events->extended(keeper->arg, keeper->end.due, answer->forgotten);
    } else if (answer->verdict == VERDICT_REFUSED) {
        keeper_describe_loss(keeper, answer, why, sizeof why);
        keeper_lose(keeper, why);
    } else {
        keeper_meet_trouble(keeper, answer->text);
    }
}

void keeper_send_renewal(struct keeper *keeper, store_done *done)
{
    struct lock_request request = keeper->plan.request;
    int64_t lease = request.lease;
    struct moment now = keeper_now(keeper);

    keeper->busy = true;
    keeper->sent = now;
    keeper->until = moment_plus(now, lease_patience(lease));
    request.grants = keeper->state == HELD ? keeper->grants : NULL;
    store_renew(keeper->store, &request, keeper->until, done, keeper);
}

void keeper_renew(struct keeper *keeper)
{
    keeper_send_renewal(keeper, renewed);
}
