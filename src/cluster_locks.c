/* Several keys of a Redis Cluster, one after the other.
 *
 * The first one is waited for in its queue. When it is granted the others are tried at once, and passing over
 * those who wait for them: who waits in one queue only would not get anywhere among others that do the same. If
 * one is refused, what was taken is given back, and that one's queue is the next to wait in.
 *
 * All leases count from when the acquisition began. The caller finds out when that has become too long ago: it
 * renews before it believes. */
#include "cluster_locks.h"

#include <stdio.h>

#include "cluster.h"
#include "dice.h"
#include "key.h"
#include "loop.h"
#include "mem.h"

/* Before another round, so that two who take from each other what the other has given back do not go on doing so. */
#define PAUSE_NS (10 * NS_PER_MS)

#define NONE SIZE_MAX

struct cluster_locks {
    struct loop *loop;
    struct cluster *cluster;
    const char *prefix;

    /* From one acquisition to the next. */
    char *last_owner;
    size_t waiting;           /* the key in whose queue we are; NONE */
    bool ours[LOCK_KEYS_MAX]; /* may be held */

    /* The request under way, a copy. */
    struct lock_request request;
    char *keys[LOCK_KEYS_MAX];
    char *owner, *who;
    bool uncertain;
    size_t order[LOCK_KEYS_MAX]; /* by the keys' bytes */
    struct moment until;
    store_done *done;
    void *arg;

    void (*heard)(struct cluster_locks *locks, const struct answer *answer); /* about one key */
    size_t step, key;
    bool taken[LOCK_KEYS_MAX]; /* granted in this round */
    bool first;                /* nothing is taken: this key may be waited for */
    bool again;                /* after giving back: another round */
    size_t silent;             /* not to be given back; NONE */
    unsigned rounds;
    struct answer result;
    struct loop_timer pause;
};

static void take_next(struct cluster_locks *locks);
static void give_back_next(struct cluster_locks *locks);

static struct moment now_of(const struct cluster_locks *locks)
{
    return loop_now(locks->loop);
}

/* -- the request ------------------------------------------------------------------------------- */

static void drop_request(struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++)
        free(locks->keys[i]);
    free(locks->owner);
    free(locks->who);
    locks->owner = locks->who = NULL;
    locks->request.key_count = 0;
}

static void finish(struct cluster_locks *locks)
{
    struct answer result = locks->result;

    drop_request(locks);
    cluster_tidy(locks->cluster);
    locks->done(locks->arg, &result);
}

static void sort_keys(struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(locks->keys[locks->order[at - 1]], locks->keys[i]) > 0; at--)
            locks->order[at] = locks->order[at - 1];
        locks->order[at] = i;
    }
}

static void begin(struct cluster_locks *locks, const struct lock_request *request,
                  struct moment until, store_done *done, void *arg)
{
    locks->request = *request;
    for (size_t i = 0; i < request->key_count; i++)
        locks->keys[i] = mem_strdup(request->keys[i]);
    locks->request.keys = NULL;
    locks->request.owner = locks->owner = mem_strdup(request->owner);
    locks->request.who = locks->who = request->who ? mem_strdup(request->who) : NULL;
    locks->until = until;
    locks->done = done;
    locks->arg = arg;
    locks->step = 0;
    locks->result = (struct answer){.verdict = VERDICT_GRANTED};
    sort_keys(locks);
}

static void key_heard(void *arg, const struct answer *answer)
{
    struct cluster_locks *locks = arg;
    locks->heard(locks, answer);
}

static void ask_about(struct cluster_locks *locks, size_t key, struct moment until,
                      cluster_ask *ask,
                      void (*heard)(struct cluster_locks *locks, const struct answer *answer))
{
    char *name = key_in_store(locks->prefix, locks->keys[key]);
    unsigned slot = cluster_slot(name);

    free(name);
    locks->key = key;
    locks->heard = heard;
    cluster_call(locks->cluster, slot, ask, locks, until, now_of(locks), key_heard, locks);
}

/* What is asked about the key at hand. */
static struct lock_request about_key(struct cluster_locks *locks, const char *const *key)
{
    struct lock_request one = locks->request;

    one.keys = key;
    one.key_count = 1;
    return one;
}

/* Of the time that is left, a share for each key that is still to be asked about. */
static struct moment share(const struct cluster_locks *locks)
{
    struct moment now = now_of(locks);
    int64_t left = (int64_t)(locks->request.key_count - locks->step);

    return moment_plus(now, moment_until(now, locks->until) / left);
}

/* -- renewing and releasing ----------------------------------------------------------------------- */

static void renew_key(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_locks *locks = arg;
    const char *key = locks->keys[locks->key];
    struct lock_request one = about_key(locks, &key);

    store_renew(node, &one, until, done, done_arg);
}

static void release_key(void *arg, struct store *node, struct moment until, store_done *done,
                        void *done_arg)
{
    struct cluster_locks *locks = arg;
    const char *key = locks->keys[locks->key];
    struct lock_request one = about_key(locks, &key);

    store_release(node, &one, locks->uncertain, until, done, done_arg);
}

/* Adds the answer about one key to that about all: no word about one of them is no word. Something may have been done
 * as soon as one of them may be. */
static void merge(struct cluster_locks *locks, const struct answer *answer)
{
    struct answer *all = &locks->result;
    bool done = all->maybe_done || answer->maybe_done || answer->verdict != VERDICT_UNKNOWN;

    if (answer->verdict == VERDICT_GRANTED) {
        all->grants[locks->key] = answer->grants[0];
        all->late |= answer->late;
    } else if (all->verdict == VERDICT_GRANTED ||
               (all->verdict == VERDICT_REFUSED && answer->verdict == VERDICT_UNKNOWN)) {
        struct answer grants = *all;
        *all = *answer;
        memcpy(all->grants, grants.grants, sizeof all->grants);
        all->key = locks->key;
    }
    all->maybe_done = done;
}

static void settle(struct cluster_locks *locks)
{
    if (locks->result.verdict != VERDICT_UNKNOWN)
        locks->result.maybe_done = false;
    finish(locks);
}

static void renew_next(struct cluster_locks *locks);

static void key_renewed(struct cluster_locks *locks, const struct answer *answer)
{
    locks->step++;
    merge(locks, answer);
    /* One is lost, so all are. */
    if (answer->verdict == VERDICT_REFUSED && locks->result.verdict == VERDICT_UNKNOWN) {
        locks->result = *answer;
        locks->result.key = locks->key;
    }
    if (answer->verdict == VERDICT_REFUSED || locks->step == locks->request.key_count)
        settle(locks);
    else
        renew_next(locks);
}

static void renew_next(struct cluster_locks *locks)
{
    ask_about(locks, locks->order[locks->step], share(locks), renew_key, key_renewed);
}

void cluster_locks_renew(struct cluster_locks *locks, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg)
{
    begin(locks, request, until, done, arg);
    renew_next(locks);
}

static void release_next(struct cluster_locks *locks);

static void key_released(struct cluster_locks *locks, const struct answer *answer)
{
    locks->step++;
    locks->ours[locks->key] = answer->verdict == VERDICT_UNKNOWN;
    merge(locks, answer);
    if (locks->step == locks->request.key_count)
        settle(locks);
    else
        release_next(locks);
}

/* The last one first: whoever waits for that key alone is called before whoever waits for all of them. */
static void release_next(struct cluster_locks *locks)
{
    size_t last = locks->request.key_count - 1 - locks->step;

    ask_about(locks, locks->order[last], share(locks), release_key, key_released);
}

void cluster_locks_release(struct cluster_locks *locks, const struct lock_request *request,
                           bool uncertain, struct moment until, store_done *done, void *arg)
{
    begin(locks, request, until, done, arg);
    locks->uncertain = uncertain;
    locks->waiting = NONE;
    release_next(locks);
}

/* -- acquiring --------------------------------------------------------------------------------- */

static void acquire_key(void *arg, struct store *node, struct moment until, store_done *done,
                        void *done_arg)
{
    struct cluster_locks *locks = arg;
    const char *key = locks->keys[locks->key];
    struct lock_request one = about_key(locks, &key);

    one.pass = !locks->first && one.queue;
    one.queue &= locks->first;
    one.listen &= locks->first;
    store_acquire(node, &one, until, done, done_arg);
}

static bool some(const bool *which, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (which[i])
            return true;
    }
    return false;
}

static void start_round(struct cluster_locks *locks)
{
    memset(locks->taken, 0, sizeof locks->taken);
    take_next(locks);
}

static void pause_over(struct loop_timer *timer)
{
    start_round(timer->owner);
}

static void given_back(struct cluster_locks *locks)
{
    struct moment now = now_of(locks);
    unsigned most = locks->rounds < 4 ? 1u << locks->rounds : 16;
    struct moment next = moment_plus(now, dice_spread(most * PAUSE_NS / 2, most * PAUSE_NS / 2));

    if (!locks->again || next.ns >= locks->until.ns) {
        finish(locks);
        return;
    }
    locks->rounds++;
    loop_arm(locks->loop, &locks->pause, next);
}

static void key_given_back(struct cluster_locks *locks, const struct answer *answer)
{
    if (answer->verdict == VERDICT_UNKNOWN) {
        locks->again = false;
        if (locks->result.verdict != VERDICT_UNKNOWN)
            locks->result = *answer;
        locks->result.maybe_done = true;
    } else {
        locks->ours[locks->key] = false;
    }
    locks->step++;
    give_back_next(locks);
}

static void give_back_key(void *arg, struct store *node, struct moment until, store_done *done,
                          void *done_arg)
{
    struct cluster_locks *locks = arg;
    const char *key = locks->keys[locks->key];
    struct lock_request one = about_key(locks, &key);

    one.at_least = 0;
    store_release(node, &one, false, until, done, done_arg);
}

static void give_back_next(struct cluster_locks *locks)
{
    size_t count = locks->request.key_count;

    for (; locks->step < count; locks->step++) {
        size_t key = locks->order[count - 1 - locks->step];
        if (locks->ours[key] && key != locks->silent) {
            ask_about(locks, key, locks->until, give_back_key, key_given_back);
            return;
        }
    }
    given_back(locks);
}

/* Nothing is held while another key is waited for, or where one cannot be had. */
static void give_back(struct cluster_locks *locks, const struct answer *why, bool again)
{
    locks->result = *why;
    locks->result.key = locks->key;
    locks->again = again;
    locks->silent = why->verdict == VERDICT_UNKNOWN ? locks->key : NONE;
    locks->step = 0;
    give_back_next(locks);
}

static void key_taken(struct cluster_locks *locks, const struct answer *answer)
{
    bool held_by_others = answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD;

    if (answer->verdict == VERDICT_GRANTED) {
        locks->ours[locks->key] = locks->taken[locks->key] = true;
        locks->result.grants[locks->key] = answer->grants[0];
        if (locks->key == locks->waiting)
            locks->waiting = NONE;
        take_next(locks);
        return;
    }
    if (held_by_others && locks->request.queue)
        locks->waiting = locks->key;
    /* After silence, the next try finds out what became of this one. */
    locks->ours[locks->key] =
        answer->verdict == VERDICT_UNKNOWN && (answer->maybe_done || locks->ours[locks->key]);
    give_back(locks, answer, held_by_others && locks->request.queue && !locks->first);
}

static void take_next(struct cluster_locks *locks)
{
    size_t next = locks->waiting;

    locks->first = !some(locks->taken, locks->request.key_count);
    if (!locks->first || next >= locks->request.key_count) {
        next = NONE;
        for (size_t i = 0; next == NONE && i < locks->request.key_count; i++) {
            if (!locks->taken[locks->order[i]])
                next = locks->order[i];
        }
    }
    if (next == NONE) {
        locks->result.verdict = VERDICT_GRANTED;
        finish(locks);
        return;
    }
    ask_about(locks, next, locks->until, acquire_key, key_taken);
}

void cluster_locks_acquire(struct cluster_locks *locks, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg)
{
    if (!locks->last_owner || strcmp(locks->last_owner, request->owner) != 0) {
        free(locks->last_owner);
        locks->last_owner = mem_strdup(request->owner);
        locks->waiting = NONE;
        memset(locks->ours, 0, sizeof locks->ours);
    }
    begin(locks, request, until, done, arg);
    locks->rounds = 0;
    start_round(locks);
}

/* -- the whole ----------------------------------------------------------------------------------- */

void cluster_locks_farewell(struct cluster_locks *locks, const struct lock_request *request)
{
    loop_disarm(locks->loop, &locks->pause);
    drop_request(locks);
    for (size_t i = 0; i < request->key_count; i++) {
        char *name = key_in_store(locks->prefix, request->keys[i]);
        struct store *node = cluster_last_node(locks->cluster, cluster_slot(name));
        struct lock_request one = *request;
        one.keys = &request->keys[i];
        one.key_count = 1;
        if (node)
            store_farewell(node, &one);
        free(name);
    }
    cluster_abandon(locks->cluster);
}

struct cluster_locks *cluster_locks_new(struct loop *loop, struct cluster *cluster,
                                        const char *prefix)
{
    struct cluster_locks *locks = mem_zeroed(sizeof *locks);

    locks->loop = loop;
    locks->cluster = cluster;
    locks->prefix = prefix;
    locks->waiting = NONE;
    locks->pause = (struct loop_timer){.fire = pause_over, .owner = locks};
    return locks;
}

void cluster_locks_free(struct cluster_locks *locks)
{
    loop_disarm(locks->loop, &locks->pause);
    drop_request(locks);
    free(locks->last_owner);
    free(locks);
}
