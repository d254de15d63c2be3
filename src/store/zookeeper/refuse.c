/* Makes refusals. One is kept, as a waiter asks again and again: from one time to the next, only
 * the age of the holder changes. */
#include "store/zookeeper/refuse.h"

#include <stdio.h>

#include "store/zookeeper/leave.h"

struct answer *zk_begin_refusal(struct zk_store *store, enum cause cause, size_t key)
{
    store->refusal.answer =
        (struct answer){.verdict = VERDICT_REFUSED, .cause = cause, .refused.key = key};
    store->refusal.party = (struct lock_party){.owner = ""};
    zk_set_text(&store->nodes[key].oldest, NULL);
    return &store->refusal.answer;
}

/* The first in the queue ask for the holder with each heartbeat, which may be another one then. */
#define NEAR 10

void zk_note_oldest(struct zk_store *store, size_t key, enum zk_branch branch,
                    const struct zk_contender *oldest)
{
    struct zk_nodes *nodes = &store->nodes[key];

    if (oldest && store->refusal.answer.refused.position <= NEAR)
        zk_set_text(&nodes->oldest, zk_path_join(nodes->branches[branch], oldest->name));
}

struct answer *zk_begin_misfit(struct zk_store *store, size_t key, unsigned limit)
{
    struct answer *refusal = zk_begin_refusal(store, CAUSE_MISFIT, key);

    if (limit > 0)
        snprintf(refusal->text, sizeof refusal->text,
                 "it is held as a semaphore with a limit of %u", limit);
    else
        snprintf(refusal->text, sizeof refusal->text, "it is held as a semaphore");
    return refusal;
}

/* -- room for a renewal ------------------------------------------------------------------------ */

/* A waiter has got another connection (ZK_ASKS_FOR_ROOM), so there is room for one more: reads the
 * queues again, which sets all watches over the new connection. A renewal takes one connection more
 * for a moment. So no waiter stays on the last one that a server has for this address: otherwise a
 * holder would have to give up its own, and another client might take that. */
static void found_room(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    store->roomy = true;
    zk_continue(store, ZK_CHECK_TURN);
}

/* The own nodes are deleted: ends the operation with the failure that store->no_room is. */
static void left_full(struct zk_store *store)
{
    zk_close_session(store);
    zk_tell_failure(store, &store->no_room);
}

void zk_leave_full(struct zk_store *store)
{
    zk_leave(store, left_full);
}

/* -- told -------------------------------------------------------------------------------------- */

void zk_refuse_again(struct zk_store *store)
{
    struct kept_answer again;

    if (store->place == ZK_HAS_PLACE && store->request.queue && !store->roomy) {
        zk_send(store, found_room, ZK_ASKS_FOR_ROOM);
        return;
    }
    answer_keep(&again, &store->refusal.answer);
    if (again.answer.refused.holder)
        again.party.age_ms += moment_until(store->refused, loop_now(store->loop)) / NS_PER_MS;
    zk_tell(store, &again.answer);
}

/* The own nodes are deleted: ends the operation with the refusal. */
static void left_refused(struct zk_store *store)
{
    zk_close_session(store);
    zk_refuse_again(store);
}

void zk_refuse_and_leave(struct zk_store *store)
{
    zk_leave(store, left_refused);
}
