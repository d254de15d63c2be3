/* Several keys of a Redis Cluster, one after the other: acquiring them, in rounds.
 *
 * The first key is waited for in its queue. When it is granted the others are tried at once, and passing over those who
 * wait for them: who waits in one queue only would not get anywhere among others that do the same. If one is
 * refused, what was taken is given back, and that one's queue is the next to wait in.
 *
 * All leases count from when the acquisition began. The caller finds out when that has become too long ago: it
 * renews before it believes. */
#include "cluster_locks_state.h"

#include "cluster.h"
#include "dice.h"
#include "mem.h"

/* Before another round, so that two who take from each other what the other has given back do not go on doing so:
 * up to this, doubled by each round up to 16 times as much. */
#define PAUSE_NS    (10 * NS_PER_MS)
#define PAUSE_ROUND 4

static void take_next(struct cluster_locks *locks);
static void give_back_next(struct cluster_locks *locks);

static void start_round(struct cluster_locks *locks)
{
    memset(locks->taken, 0, sizeof locks->taken);
    locks->result = (struct answer){.verdict = VERDICT_GRANTED};
    take_next(locks);
}

/* -- giving back ------------------------------------------------------------------------------- */

static void pause_over(struct loop_timer *timer)
{
    start_round(timer->owner);
}

static void given_back(struct cluster_locks *locks)
{
    unsigned round = locks->rounds < PAUSE_ROUND ? locks->rounds : PAUSE_ROUND;
    int64_t half = (1 << round) * PAUSE_NS / 2;
    struct moment next = moment_plus(loop_now(locks->loop), dice_spread(half, half));

    if (!locks->again || next.ns >= locks->until.ns) {
        cluster_locks_finish(locks);
        return;
    }
    locks->rounds++;
    locks->pause = (struct loop_timer){.fire = pause_over, .owner = locks};
    loop_arm(locks->loop, &locks->pause, next);
}

static void give_back_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                          struct moment until, store_done *done, void *done_arg)
{
    (void)locks;
    one->at_least = 0;
    one->in_time = true;
    store_release(node, one, false, until, done, done_arg);
}

static void key_given_back(struct cluster_locks *locks, const struct answer *answer)
{
    locks->step++;
    if (answer->verdict != VERDICT_UNKNOWN) {
        locks->ours[locks->key] = false;
    } else {
        locks->again = false;
        if (locks->result.verdict != VERDICT_UNKNOWN)
            locks->result = *answer;
        locks->result.maybe_done = true;
    }
    give_back_next(locks);
}

static void give_back_next(struct cluster_locks *locks)
{
    size_t count = locks->request.key_count;

    for (; locks->step < count; locks->step++) {
        size_t key = locks->order[count - 1 - locks->step];
        if (locks->ours[key] && key != locks->silent) {
            cluster_locks_ask(locks, key, locks->until, give_back_key, key_given_back);
            return;
        }
    }
    given_back(locks);
}

/* Nothing is held while another key is waited for, or where one cannot be had. After silence, the next try finds out
 * what became of that key. */
static void give_back(struct cluster_locks *locks, const struct answer *why, bool again)
{
    locks->result = *why;
    locks->result.key = locks->key;
    locks->again = again;
    locks->silent = why->verdict == VERDICT_UNKNOWN ? locks->key : CLUSTER_NO_KEY;
    locks->step = 0;
    give_back_next(locks);
}

/* -- taking ------------------------------------------------------------------------------------ */

static bool has_taken(const struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++) {
        if (locks->taken[i])
            return true;
    }
    return false;
}

static void acquire_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                        struct moment until, store_done *done, void *done_arg)
{
    bool first = !has_taken(locks);

    one->pass = one->queue && !first;
    one->queue &= first;
    one->listen &= first;
    store_acquire(node, one, until, done, done_arg);
}

static void key_taken(struct cluster_locks *locks, const struct answer *answer)
{
    bool first = !has_taken(locks);
    bool to_wait =
        answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD && locks->request.queue;
    bool *ours = &locks->ours[locks->key];

    if (answer->verdict == VERDICT_GRANTED) {
        *ours = locks->taken[locks->key] = true;
        locks->result.grants[locks->key] = answer->grants[0];
        if (locks->key == locks->waiting)
            locks->waiting = CLUSTER_NO_KEY;
        take_next(locks);
        return;
    }
    if (to_wait)
        locks->waiting = locks->key;
    *ours = answer->verdict == VERDICT_UNKNOWN && (answer->maybe_done || *ours);
    give_back(locks, answer, to_wait && !first);
}

/* The one that is waited for; after it, and where there is none, by their bytes. */
static size_t next_to_take(const struct cluster_locks *locks)
{
    if (!has_taken(locks) && locks->waiting < locks->request.key_count)
        return locks->waiting;
    for (size_t i = 0; i < locks->request.key_count; i++) {
        if (!locks->taken[locks->order[i]])
            return locks->order[i];
    }
    return CLUSTER_NO_KEY;
}

static void take_next(struct cluster_locks *locks)
{
    size_t next = next_to_take(locks);

    if (next == CLUSTER_NO_KEY)
        cluster_locks_finish(locks);
    else
        cluster_locks_ask(locks, next, locks->until, acquire_key, key_taken);
}

static void start_rounds(void *arg)
{
    struct cluster_locks *locks = arg;

    locks->rounds = 0;
    start_round(locks);
}

void cluster_locks_acquire(struct cluster_locks *locks, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg)
{
    if (!locks->last_owner || strcmp(locks->last_owner, request->owner) != 0) {
        free(locks->last_owner);
        locks->last_owner = mem_strdup(request->owner);
        locks->waiting = CLUSTER_NO_KEY;
        memset(locks->ours, 0, sizeof locks->ours);
    }
    cluster_locks_begin(locks, request, until, done, arg);
    if (request->listen)
        cluster_look_around(locks->cluster, until, start_rounds, locks);
    else
        start_rounds(locks);
}
