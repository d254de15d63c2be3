/* Several keys, one after the other.
 *
 * An acquisition waits for the first key in its queue. When it is granted, the others are tried at
 * once. If one of them is refused, all are released, and that one's queue is the next to wait
 * in.
 *
 * Keys that are always in use are never free at the same time by chance. An owner that has
 * missed them a few times queues for all: at the front of the first one's queue without taking
 * it, then at the front of the second one's, and takes them when it is first everywhere. As no
 * owner queues for a key while it waits for one that comes before it in the order of bytes, no
 * two wait for each other.
 *
 * All leases count from when the acquisition began. The caller finds out when that has become
 * too long ago: it renews before it believes. */
#include "store/cluster/several_keys.h"

#include "base/mem.h"
#include "net/loop.h"

/* Rounds that got some of the keys and not all, before the owner queues for all. */
#define MISSES_MAX 3
/* Of one acquisition, before it waits to be called: servers may say one thing and then another. */
#define ROUNDS_MAX 8

#define NO_KEY SIZE_MAX

/* The owner's share in a key. */
enum hold { HOLD_NOTHING, HOLD_PLACE, HOLD_LOCK };

struct several_keys {
    struct store base;
    struct store *below; /* takes one key each */
    struct loop *loop;

    /* The operation under way (base.operation). */
    const char *const *keys;
    size_t key_count;
    size_t order[LOCK_KEYS_MAX]; /* the keys by their bytes */
    struct moment begun;
    struct kept_answer result; /* about all keys */
    size_t step;               /* how many keys it has been through */
    size_t key;                /* about which one it asks now */
    /* The request about it. */
    struct acquire_request one;
    union {
        struct renew_request renew;
        struct release_request release;
    } request;

    /* Kept from one acquisition to the next. */
    char *last_owner;
    enum hold holds[LOCK_KEYS_MAX];
    size_t waiting;            /* the key in whose queue it begins; NO_KEY */
    unsigned misses;           /* rounds that got something, and not all */
    bool taken[LOCK_KEYS_MAX]; /* in this round */
    bool again;                /* after releasing these: another round */
    unsigned rounds;           /* of this acquisition */
};

static struct several_keys *of(struct store *base)
{
    return MEM_CONTAINER(struct several_keys, base, base);
}

/* -- the request ------------------------------------------------------------------------------- */

static void sort_keys(struct several_keys *several)
{
    for (size_t i = 0; i < several->key_count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(several->keys[several->order[at - 1]], several->keys[i]) > 0; at--)
            several->order[at] = several->order[at - 1];
        several->order[at] = i;
    }
}

static void set_granted(struct several_keys *several)
{
    several->result.answer =
        (struct answer){.verdict = VERDICT_GRANTED, .granted.grants = several->result.grants};
}

static void finish(struct several_keys *several)
{
    struct kept_answer result; /* "done" may begin the next operation */

    answer_keep(&result, &several->result.answer);
    several->base.operation.done(several->base.operation.arg, &result.answer);
}

/* Makes the next request one about that key only. Returns its lock. */
static struct acquire_request *set_key(struct several_keys *several, size_t key)
{
    several->key = key;
    several->one = *operation_lock(&several->base.operation);
    several->one.keys = &several->keys[key];
    several->one.key_count = 1;
    return &several->one;
}

/* Asks about several->key. */
static void ask(struct several_keys *several, struct operation operation, struct moment until,
                store_done *done)
{
    operation.until = until;
    operation.done = done;
    operation.arg = several;
    store_start(several->below, &operation);
}

/* Adds what was granted for one key to the result: of all leases, from the earliest and for the
 * shortest. */
static void add_grant(struct several_keys *several, const struct answer *granted)
{
    struct answer *all = &several->result.answer;
    struct moment from = all->granted.from.ns ? all->granted.from : several->begun;

    if (granted->granted.grants)
        several->result.grants[several->key] = granted->granted.grants[0];
    all->maybe_done |= granted->maybe_done;
    all->granted.forgotten |= granted->granted.forgotten;
    all->granted.not_listening |= granted->granted.not_listening;
    if (granted->granted.from.ns && granted->granted.from.ns < from.ns)
        all->granted.from = granted->granted.from;
    if (granted->granted.lease > 0 &&
        (all->granted.lease == 0 || granted->granted.lease < all->granted.lease))
        all->granted.lease = granted->granted.lease;
}

/* -- renewing and releasing -------------------------------------------------------------------- */

/* Adds the answer about one key to that about all. A refusal counts more than that all is well,
 * silence more than a refusal, which is not forgotten for it. Something may have been done as soon
 * as one of them may be. */
static void merge(struct several_keys *several, const struct answer *answer)
{
    struct answer *all = &several->result.answer;
    bool done = all->maybe_done || answer->maybe_done || answer->verdict != VERDICT_UNKNOWN;
    size_t lost = answer->verdict == VERDICT_REFUSED ? several->key + 1 : all->lost;

    if (answer->verdict == VERDICT_GRANTED) {
        add_grant(several, answer);
    } else if (answer->verdict > all->verdict) {
        answer_keep(&several->result, answer);
        all->refused.key = several->key;
    }
    all->maybe_done = done;
    all->lost = lost;
}

static void ask_next(struct several_keys *several);

static void answered(void *arg, const struct answer *answer)
{
    struct several_keys *several = arg;
    bool renewal = several->base.operation.verb == VERB_RENEW;

    several->step++;
    if (renewal && answer->verdict == VERDICT_REFUSED) {
        /* One is lost, so all are. */
        answer_keep(&several->result, answer);
        several->result.answer.refused.key = several->key;
        finish(several);
        return;
    }
    if (!renewal)
        several->holds[several->key] =
            answer->verdict == VERDICT_UNKNOWN ? HOLD_LOCK : HOLD_NOTHING;
    merge(several, answer);
    if (several->step == several->key_count) {
        if (several->result.answer.verdict != VERDICT_UNKNOWN)
            several->result.answer.maybe_done = false;
        finish(several);
    } else {
        ask_next(several);
    }
}

/* Renews or releases the next key. A release begins with the last one: a waiter for only that key
 * is woken before a waiter for all. */
static void ask_next(struct several_keys *several)
{
    const struct operation *whole = &several->base.operation;
    struct operation operation = {.verb = whole->verb};

    if (whole->verb == VERB_RENEW) {
        struct renew_request *request = &several->request.renew;
        *request = *whole->renew;
        request->lock = set_key(several, several->order[several->step]);
        if (request->grants)
            request->grants += several->key;
        operation.renew = request;
    } else {
        struct release_request *request = &several->request.release;
        *request = *whole->release;
        request->lock = set_key(several, several->order[several->key_count - 1 - several->step]);
        operation.release = request;
    }
    /* Of the time that is left, a share for each key that is still to be asked about. */
    struct moment now = loop_now(several->loop);
    int64_t left = (int64_t)(several->key_count - several->step);
    int64_t share = moment_until(now, whole->until) / (left > 1 ? left : 1);
    ask(several, operation, moment_plus(now, share), answered);
}

static enum release_sent release_nowait(struct store *base, const struct release_request *request)
{
    struct acquire_request one = *request->lock;
    struct release_request about_one = *request;
    enum release_sent all = RELEASE_SENT;

    about_one.lock = &one;
    one.key_count = 1;
    for (size_t i = 0; i < request->lock->key_count; i++) {
        one.keys = &request->lock->keys[i];
        enum release_sent sent = store_release_nowait(of(base)->below, &about_one);
        if (all == RELEASE_SENT || sent == RELEASE_BLOCKED)
            all = sent;
    }
    return all;
}

/* Whether waiting for it is of use. */
static bool is_taken(const struct answer *answer)
{
    return answer->cause == CAUSE_HELD || answer->cause == CAUSE_CLOSED;
}

/* -- acquiring: releasing ---------------------------------------------------------------------- */

static void start_round(struct several_keys *several);
static void release_taken_next(struct several_keys *several);

/* Whether a key must be released after the result. No lock is held while another key is waited for,
 * no place in a queue is kept beyond that key, and nothing is left where it failed. After silence,
 * the next try finds out. */
static bool must_go(const struct several_keys *several, size_t key)
{
    const struct answer *result = &several->result.answer;
    bool waits = is_taken(result) && several->base.operation.acquire->queue;

    if (several->holds[key] != HOLD_PLACE)
        return several->holds[key] == HOLD_LOCK &&
               (result->verdict == VERDICT_REFUSED || key != result->refused.key);
    return result->verdict == VERDICT_REFUSED &&
           (!waits || strcmp(several->keys[key], several->keys[result->refused.key]) > 0);
}

static void taken_released(void *arg, const struct answer *answer)
{
    struct several_keys *several = arg;
    struct answer *result = &several->result.answer;

    several->step++;
    if (answer->verdict != VERDICT_UNKNOWN) {
        several->holds[several->key] = HOLD_NOTHING;
    } else {
        several->again = false;
        if (result->verdict != VERDICT_UNKNOWN)
            answer_keep(&several->result, answer);
        result->refused.key = several->key;
        result->maybe_done = true;
    }
    release_taken_next(several);
}

static void release_taken_next(struct several_keys *several)
{
    size_t count = several->key_count;

    for (; several->step < count; several->step++) {
        size_t key = several->order[count - 1 - several->step];
        if (must_go(several, key)) {
            struct release_request *request = &several->request.release;
            *request = (struct release_request){
                .lock = set_key(several, key), .end.how = LOCK_UNUSED, .in_time = true};
            ask(several, (struct operation){.verb = VERB_RELEASE, .release = request},
                several->base.operation.until, taken_released);
            return;
        }
    }
    if (several->again && !moment_reached(several->base.operation.until, loop_now(several->loop)))
        start_round(several);
    else
        finish(several);
}

static void release_taken(struct several_keys *several, const struct answer *why, bool again)
{
    answer_keep(&several->result, why);
    several->result.answer.refused.key = several->key;
    several->again = again;
    several->step = 0;
    release_taken_next(several);
}

/* -- acquiring: taking ------------------------------------------------------------------------- */

static bool has_taken(const struct several_keys *several)
{
    for (size_t i = 0; i < several->key_count; i++) {
        if (several->taken[i])
            return true;
    }
    return false;
}

/* Notes the answer about the key. A place stays until it is released or used. */
static void note(struct several_keys *several, const struct answer *answer, bool queued)
{
    enum hold *hold = &several->holds[several->key];

    if (answer->verdict == VERDICT_GRANTED) {
        *hold = HOLD_LOCK;
        several->taken[several->key] = true;
        add_grant(several, answer);
    } else if (answer->verdict == VERDICT_REFUSED) {
        *hold = queued || *hold != HOLD_NOTHING ? HOLD_PLACE : HOLD_NOTHING;
    }
    if (answer->maybe_done || answer->cause == CAUSE_REVOKED)
        *hold = HOLD_LOCK;
}

static void acquire_key(struct several_keys *several, store_done *done)
{
    ask(several, (struct operation){.verb = VERB_ACQUIRE, .acquire = &several->one},
        several->base.operation.until, done);
}

static void take_next(struct several_keys *several);

static void key_taken(void *arg, const struct answer *answer)
{
    struct several_keys *several = arg;
    bool first = !has_taken(several);
    bool to_wait = is_taken(answer) && several->base.operation.acquire->queue;

    note(several, answer, to_wait && first);
    if (answer->verdict == VERDICT_GRANTED) {
        take_next(several);
        return;
    }
    if (to_wait)
        several->waiting = several->key;
    several->misses += to_wait && !first;
    release_taken(several, answer, to_wait && !first && ++several->rounds < ROUNDS_MAX);
}

/* The one that is waited for; after it, and where there is none, by their bytes. */
static size_t next_to_take(const struct several_keys *several)
{
    if (!has_taken(several) && several->waiting < several->key_count)
        return several->waiting;
    for (size_t i = 0; i < several->key_count; i++) {
        if (!several->taken[several->order[i]])
            return several->order[i];
    }
    return NO_KEY;
}

static void take_next(struct several_keys *several)
{
    size_t next = next_to_take(several);

    if (next == NO_KEY) {
        finish(several);
        return;
    }
    struct acquire_request *one = set_key(several, next);
    bool first = !has_taken(several);
    one->queue &= first;
    one->listen &= first;
    acquire_key(several, key_taken);
}

/* -- acquiring: queueing for all --------------------------------------------------------------- */

static void stand_next(struct several_keys *several);

static void stood(void *arg, const struct answer *answer)
{
    struct several_keys *several = arg;
    bool next =
        answer->cause == CAUSE_HELD && answer->refused.position == 1 && !answer->refused.holders;

    note(several, answer, is_taken(answer));
    several->step++;
    if (answer->verdict == VERDICT_GRANTED || next)
        stand_next(several);
    else
        release_taken(several, answer, false);
}

static void stand_next(struct several_keys *several)
{
    if (several->step == several->key_count) {
        take_next(several);
        return;
    }
    set_key(several, several->order[several->step])->queue_only = true;
    acquire_key(several, stood);
}

/* -- acquiring: from the beginning ------------------------------------------------------------- */

static void start_round(struct several_keys *several)
{
    memset(several->taken, 0, sizeof several->taken);
    set_granted(several);
    if (several->misses < MISSES_MAX) {
        take_next(several);
    } else {
        several->waiting = NO_KEY;
        several->step = 0;
        stand_next(several);
    }
}

static void acquire(struct several_keys *several, const char *owner)
{
    if (!several->last_owner || strcmp(several->last_owner, owner) != 0) {
        free(several->last_owner);
        several->last_owner = mem_strdup(owner);
        several->waiting = NO_KEY;
        several->misses = 0;
        memset(several->holds, 0, sizeof several->holds);
    }
    several->rounds = 0;
    start_round(several);
}

/* -- the whole --------------------------------------------------------------------------------- */

static void start(struct store *base, const struct operation *operation)
{
    struct several_keys *several = of(base);
    const struct acquire_request *lock = operation_lock(operation);

    several->keys = lock->keys;
    several->key_count = lock->key_count;
    sort_keys(several);
    several->begun = loop_now(several->loop);
    several->step = 0;
    set_granted(several);
    switch (operation->verb) {
    case VERB_ACQUIRE: acquire(several, lock->owner); break;
    case VERB_RENEW: ask_next(several); break;
    case VERB_RELEASE:
        several->waiting = NO_KEY;
        several->misses = 0;
        ask_next(several);
        break;
    default: store_start(several->below, operation); break;
    }
}

/* Only one key was asked for. */
static void handed(void *arg, const struct answer *grant)
{
    struct several_keys *several = of(arg);

    several->holds[0] = HOLD_LOCK;
    store_hand(&several->base, grant);
}

static void close_several(struct store *base)
{
    struct several_keys *several = of(base);

    store_close(several->below);
    free(several->last_owner);
    free(several);
}

struct store *several_keys_open(struct loop *loop, struct store *single)
{
    static const struct store_events events = {store_poke, handed};
    static const struct store_ops ops = {close_several, start, release_nowait};
    struct several_keys *several = mem_zeroed(sizeof *several);

    several->base.ops = &ops;
    several->loop = loop;
    several->below = single;
    several->waiting = NO_KEY;
    store_on_event(single, &events, &several->base);
    return &several->base;
}
