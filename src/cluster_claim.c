/* Several keys of a Redis Cluster, one after the other: acquiring them.
 *
 * The first key is waited for in its queue. When it is granted, the others are tried at once. If one of them is refused,
 * what was taken is given back, and that one's queue is the next to wait in.
 *
 * Keys that are always in use are never free at the same time by chance. So who has missed them a few times stands in
 * line for all: at the front of the first one's queue without taking it, then at the front of the second one's,
 * and takes them when it is its turn everywhere. As nobody stands for a key while waiting for one that comes before
 * it in the order of bytes, no two wait for each other.
 *
 * All leases count from when the acquisition began. The caller finds out when that has become too long ago: it
 * renews before it believes. */
#include "cluster_locks_state.h"

#include "mem.h"

#define MISSES_MAX 3

static void start_round(struct cluster_locks *locks);

/* -- giving back ------------------------------------------------------------------------------- */

static void give_back_next(struct cluster_locks *locks);

/* Whether what is held at a key has to go, after the result. Nothing is held while another key is waited for, nor
 * stood for beyond it, and nothing is left where it failed. After silence, the next try finds out. */
static bool must_go(const struct cluster_locks *locks, size_t key)
{
    const struct answer *result = &locks->result;
    bool waits = result->cause == CAUSE_HELD && locks->request.queue;

    if (locks->holds[key] != CLUSTER_PLACE)
        return locks->holds[key] == CLUSTER_LOCK &&
               (result->verdict == VERDICT_REFUSED || key != result->key);
    return result->verdict == VERDICT_REFUSED &&
           (!waits || strcmp(locks->keys[key], locks->keys[result->key]) > 0);
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
    struct answer *result = &locks->result;

    locks->step++;
    if (answer->verdict != VERDICT_UNKNOWN) {
        locks->holds[locks->key] = CLUSTER_NOTHING;
    } else {
        locks->again = false;
        if (result->verdict != VERDICT_UNKNOWN)
            *result = *answer;
        result->key = locks->key;
        result->maybe_done = true;
    }
    give_back_next(locks);
}

static void give_back_next(struct cluster_locks *locks)
{
    size_t count = locks->request.key_count;

    for (; locks->step < count; locks->step++) {
        size_t key = locks->order[count - 1 - locks->step];
        if (must_go(locks, key)) {
            cluster_locks_ask(locks, key, locks->until, give_back_key, key_given_back);
            return;
        }
    }
    if (locks->again && !moment_reached(locks->until, loop_now(locks->loop)))
        start_round(locks);
    else
        cluster_locks_finish(locks);
}

static void give_back(struct cluster_locks *locks, const struct answer *why, bool again)
{
    locks->result = *why;
    locks->result.key = locks->key;
    locks->again = again;
    locks->step = 0;
    give_back_next(locks);
}

/* -- taking ------------------------------------------------------------------------------------ */

static void take_next(struct cluster_locks *locks);

static bool has_taken(const struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++) {
        if (locks->taken[i])
            return true;
    }
    return false;
}

/* What the answer says of the key. A place stays until it is given back or used. */
static void note(struct cluster_locks *locks, const struct answer *answer, bool queued)
{
    enum cluster_hold *hold = &locks->holds[locks->key];

    if (answer->verdict == VERDICT_GRANTED) {
        *hold = CLUSTER_LOCK;
        locks->taken[locks->key] = true;
        locks->result.grants[locks->key] = answer->grants[0];
    } else if (answer->verdict == VERDICT_REFUSED) {
        *hold = queued || *hold != CLUSTER_NOTHING ? CLUSTER_PLACE : CLUSTER_NOTHING;
    } else if (answer->maybe_done) {
        *hold = CLUSTER_LOCK;
    }
}

static void acquire_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                        struct moment until, store_done *done, void *done_arg)
{
    bool first = !has_taken(locks);

    one->queue &= first;
    one->listen &= first;
    store_acquire(node, one, until, done, done_arg);
}

static void key_taken(struct cluster_locks *locks, const struct answer *answer)
{
    bool first = !has_taken(locks);
    bool to_wait = answer->cause == CAUSE_HELD && locks->request.queue;

    note(locks, answer, to_wait && first);
    if (answer->verdict == VERDICT_GRANTED) {
        take_next(locks);
        return;
    }
    if (to_wait)
        locks->waiting = locks->key;
    locks->misses += to_wait && !first;
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

/* -- standing in line ---------------------------------------------------------------------------- */

static void stand_next(struct cluster_locks *locks);

static void stand_at_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                         struct moment until, store_done *done, void *done_arg)
{
    (void)locks;
    one->stand = true;
    store_acquire(node, one, until, done, done_arg);
}

static void stood(struct cluster_locks *locks, const struct answer *answer)
{
    bool held = answer->cause == CAUSE_HELD;

    note(locks, answer, held);
    locks->step++;
    if (answer->verdict == VERDICT_GRANTED || (held && answer->position == 1 && !answer->holders))
        stand_next(locks);
    else
        give_back(locks, answer, false);
}

static void stand_next(struct cluster_locks *locks)
{
    if (locks->step < locks->request.key_count)
        cluster_locks_ask(locks, locks->order[locks->step], locks->until, stand_at_key, stood);
    else
        take_next(locks);
}

/* -- from the beginning -------------------------------------------------------------------------- */

static void start_round(struct cluster_locks *locks)
{
    memset(locks->taken, 0, sizeof locks->taken);
    locks->result = (struct answer){.verdict = VERDICT_GRANTED};
    if (locks->misses < MISSES_MAX) {
        take_next(locks);
    } else {
        locks->waiting = CLUSTER_NO_KEY;
        locks->step = 0;
        stand_next(locks);
    }
}

void cluster_locks_acquire(struct cluster_locks *locks, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg)
{
    if (!locks->last_owner || strcmp(locks->last_owner, request->owner) != 0) {
        free(locks->last_owner);
        locks->last_owner = mem_strdup(request->owner);
        locks->waiting = CLUSTER_NO_KEY;
        locks->misses = 0;
        memset(locks->holds, 0, sizeof locks->holds);
    }
    cluster_locks_begin(locks, request, until, done, arg);
    start_round(locks);
}
