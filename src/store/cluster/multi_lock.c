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
#include "store/cluster/multi_lock.h"

#include "base/mem.h"
#include "net/loop.h"

/* Rounds that got some of the keys and not all, before the owner queues for all. */
#define MISSES_MAX 3
/* Rounds of one acquisition, before it waits to be called: servers may say one thing and then
 * another. */
#define ROUNDS_MAX 8

#define NO_KEY SIZE_MAX

/* The owner's share in a key. */
enum hold { HOLD_NOTHING, HOLD_PLACE, HOLD_LOCK };

struct multi_lock {
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
    bool replaces;             /* --replace: the holders of each key are asked, once */
    bool asked[LOCK_KEYS_MAX]; /* they were */
    bool taken[LOCK_KEYS_MAX]; /* in this round */
    bool again;                /* after releasing these: another round */
    unsigned rounds;           /* of this acquisition */
};

/* Returns the store that "base" is a part of. */
static struct multi_lock *multi_of(struct store *base)
{
    return MEM_CONTAINER(struct multi_lock, base, base);
}

/* -- the request ------------------------------------------------------------------------------- */

/* Sets the result to one that nothing speaks against so far. */
static void set_granted(struct multi_lock *multi)
{
    multi->result.answer =
        (struct answer){.verdict = VERDICT_GRANTED, .granted.grants = multi->result.grants};
}

/* Reports the result, from a copy. */
static void finish_operation(struct multi_lock *multi)
{
    struct kept_answer result; /* "done" may begin the next operation */

    answer_keep(&result, &multi->result.answer);
    multi->base.operation.done(multi->base.operation.arg, &result.answer);
}

/* Makes the next request one about that key only. Returns its lock. */
static struct acquire_request *set_key(struct multi_lock *multi, size_t key)
{
    multi->key = key;
    multi->one = *operation_lock(&multi->base.operation);
    multi->one.keys = &multi->keys[key];
    multi->one.key_count = 1;
    return &multi->one;
}

/* Starts the operation, which is about multi->key, at the store below. "done" gets its answer, with
 * multi as "arg". */
static void ask_below(struct multi_lock *multi, struct operation operation, struct moment until,
                      store_done *done)
{
    operation.until = until;
    operation.done = done;
    operation.arg = multi;
    store_start(multi->below, &operation);
}

/* Adds what was granted for one key to the result: of all leases, from the earliest and for the
 * shortest. */
static void add_grant(struct multi_lock *multi, const struct answer *granted)
{
    struct answer *all = &multi->result.answer;
    struct moment from = all->granted.from.ns ? all->granted.from : multi->begun;

    if (granted->granted.grants)
        multi->result.grants[multi->key] = granted->granted.grants[0];
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

/* Adds the answer about one key to that about all: UNKNOWN counts more than a refusal, and that
 * more than a grant. A key that was refused is noted all the same (lost). Where the whole is
 * UNKNOWN, something may be done as soon as one key was answered, or may be done. */
static void merge_answer(struct multi_lock *multi, const struct answer *answer)
{
    struct answer *all = &multi->result.answer;
    bool done = all->maybe_done || answer->maybe_done || answer->verdict != VERDICT_UNKNOWN;
    size_t lost = answer->verdict == VERDICT_REFUSED ? multi->key + 1 : all->lost;

    if (answer->verdict == VERDICT_GRANTED) {
        add_grant(multi, answer);
    } else if (answer->verdict > all->verdict) { /* GRANTED < REFUSED < UNKNOWN */
        answer_keep(&multi->result, answer);
        all->refused.key = multi->key;
    }
    all->maybe_done = done;
    all->lost = lost;
}

static void ask_next(struct multi_lock *multi);

/* Takes the answer to the renewal or the release of one key; asks about the next one, or reports on
 * all. */
static void on_key_answer(void *arg, const struct answer *answer)
{
    struct multi_lock *multi = arg;
    bool renewal = multi->base.operation.verb == VERB_RENEW;

    multi->step++;
    if (renewal && answer->verdict == VERDICT_REFUSED) {
        /* One key is lost, so the lock is. */
        answer_keep(&multi->result, answer);
        multi->result.answer.refused.key = multi->key;
        finish_operation(multi);
        return;
    }
    if (!renewal)
        multi->holds[multi->key] = answer->verdict == VERDICT_UNKNOWN ? HOLD_LOCK : HOLD_NOTHING;
    merge_answer(multi, answer);
    if (multi->step == multi->key_count) {
        if (multi->result.answer.verdict != VERDICT_UNKNOWN) /* then nothing is open */
            multi->result.answer.maybe_done = false;
        finish_operation(multi);
    } else {
        ask_next(multi);
    }
}

/* Renews or releases the next key. A release begins with the last one: a waiter for only that key
 * is woken before a waiter for all. */
static void ask_next(struct multi_lock *multi)
{
    const struct operation *whole = &multi->base.operation;
    struct operation operation = {.verb = whole->verb};

    if (whole->verb == VERB_RENEW) {
        struct renew_request *request = &multi->request.renew;
        *request = *whole->renew;
        request->lock = set_key(multi, multi->order[multi->step]);
        if (request->grants) /* one for each key */
            request->grants += multi->key;
        operation.renew = request;
    } else {
        struct release_request *request = &multi->request.release;
        *request = *whole->release;
        request->lock = set_key(multi, multi->order[multi->key_count - 1 - multi->step]);
        operation.release = request;
    }
    /* Each key that is still to be asked about gets a share of the time that is left. */
    struct moment now = loop_now(multi->loop);
    int64_t left = (int64_t)(multi->key_count - multi->step);
    int64_t share = moment_until(now, whole->until) / (left > 1 ? left : 1);
    ask_below(multi, operation, moment_plus(now, share), on_key_answer);
}

/* See store_release_nowait(): releases each key. Returns the worst of what became of them. */
static enum release_sent release_nowait(struct store *base, const struct release_request *request)
{
    struct acquire_request one = *request->lock;
    struct release_request about_one = *request;
    enum release_sent all = RELEASE_SENT;

    about_one.lock = &one;
    one.key_count = 1;
    for (size_t i = 0; i < request->lock->key_count; i++) {
        one.keys = &request->lock->keys[i];
        enum release_sent sent = store_release_nowait(multi_of(base)->below, &about_one);
        if (all == RELEASE_SENT || sent == RELEASE_BLOCKED)
            all = sent;
    }
    return all;
}

/* Whether the answer is that others have the key, or it is paused: waiting for it is of use. */
static bool is_taken(const struct answer *answer)
{
    return answer->cause == CAUSE_HELD || answer->cause == CAUSE_CLOSED;
}

/* -- acquiring: releasing ---------------------------------------------------------------------- */

static void start_round(struct multi_lock *multi);
static void release_taken_next(struct multi_lock *multi);

/* Whether the key must be released after this round, which has not got all keys: the answer about
 * one of them was a refusal, or none. */
static bool must_release(const struct multi_lock *multi, size_t key)
{
    const struct answer *result = &multi->result.answer;
    size_t last = result->refused.key; /* the one that the round has ended at */
    bool refused = result->verdict == VERDICT_REFUSED;
    bool waits = is_taken(result) && multi->base.operation.acquire->queue; /* for that key */

    switch (multi->holds[key]) {
    case HOLD_NOTHING: break;
    case HOLD_LOCK:
        /* No key is held while another one is waited for. A key about which there was no answer is
         * kept: the next try finds out what became of it. */
        return refused || key != last;
    case HOLD_PLACE:
        /* An owner may queue for keys up to the one that it waits for, in the order of bytes. */
        return refused && (!waits || strcmp(multi->keys[key], multi->keys[last]) > 0);
    }
    return false;
}

/* Takes the answer to the release of one key of those that were taken. If it is UNKNOWN, the key
 * may still be held: there is no further round, and the caller is told (maybe_done). */
static void taken_released(void *arg, const struct answer *answer)
{
    struct multi_lock *multi = arg;
    struct answer *result = &multi->result.answer;

    multi->step++;
    if (answer->verdict != VERDICT_UNKNOWN) {
        multi->holds[multi->key] = HOLD_NOTHING;
    } else {
        multi->again = false;
        if (result->verdict != VERDICT_UNKNOWN)
            answer_keep(&multi->result, answer);
        result->refused.key = multi->key;
        result->maybe_done = true;
    }
    release_taken_next(multi);
}

/* Releases the taken keys of a round that did not get all, the last one first; then begins the next
 * round, or ends. */
static void release_taken_next(struct multi_lock *multi)
{
    const struct acquire_request *acquire = multi->base.operation.acquire;
    size_t count = multi->key_count;

    for (; multi->step < count; multi->step++) {
        size_t key = multi->order[count - 1 - multi->step];
        if (must_release(multi, key)) {
            struct release_request *request = &multi->request.release;
            *request = (struct release_request){.lock = set_key(multi, key),
                                                .end.how = LOCK_UNUSED,
                                                .in_time = true,
                                                .uncertain = acquire->uncertain};
            ask_below(multi, (struct operation){.verb = VERB_RELEASE, .release = request},
                      multi->base.operation.until, taken_released);
            return;
        }
    }
    if (multi->again && !moment_reached(multi->base.operation.until, loop_now(multi->loop)))
        start_round(multi);
    else
        finish_operation(multi);
}

/* Ends a round that did not get all keys: releases what it must, and then tells the answer "why",
 * which is about multi->key, or tries again. */
static void release_taken(struct multi_lock *multi, const struct answer *why)
{
    answer_keep(&multi->result, why);
    multi->result.answer.refused.key = multi->key;
    multi->step = 0;
    release_taken_next(multi);
}

/* -- acquiring: taking ------------------------------------------------------------------------- */

/* Whether this round has taken a key already. */
static bool has_taken(const struct multi_lock *multi)
{
    for (size_t i = 0; i < multi->key_count; i++) {
        if (multi->taken[i])
            return true;
    }
    return false;
}

/* Notes what this owner has of multi->key by its answer: the lock, a place in the queue, or
 * nothing. queued: whether a refusal has given it a place. A place stays until it is released or
 * used. Anything that may have been done counts as held. */
static void note_answer(struct multi_lock *multi, const struct answer *answer, bool queued)
{
    enum hold *hold = &multi->holds[multi->key];

    /* This request has asked the holders to release (--replace): the next one need not. */
    multi->asked[multi->key] |= multi->one.replace && answer->refused.holders > 0;
    if (answer->verdict == VERDICT_GRANTED) {
        *hold = HOLD_LOCK;
        multi->taken[multi->key] = true;
        add_grant(multi, answer);
    } else if (answer->verdict == VERDICT_REFUSED) {
        *hold = queued || *hold != HOLD_NOTHING ? HOLD_PLACE : HOLD_NOTHING;
    }
    if (answer->maybe_done || answer->cause == CAUSE_REVOKED)
        *hold = HOLD_LOCK;
}

/* Sends the request that set_key() has made for a key, as an acquisition. */
static void acquire_key(struct multi_lock *multi, store_done *done)
{
    multi->one.replace = multi->replaces && !multi->asked[multi->key];
    ask_below(multi, (struct operation){.verb = VERB_ACQUIRE, .acquire = &multi->one},
              multi->base.operation.until, done);
}

static void take_next(struct multi_lock *multi);

/* Takes the answer about one key of those to acquire: takes the next one, or ends the round. If
 * others hold it, the owner waits for this key, which the next round takes first: at once, a few
 * times; then when the caller asks again. */
static void key_taken(void *arg, const struct answer *answer)
{
    struct multi_lock *multi = arg;
    bool first = !has_taken(multi);
    bool to_wait = is_taken(answer) && multi->base.operation.acquire->queue;

    note_answer(multi, answer, to_wait && first); /* only the first one is queued for */
    if (answer->verdict == VERDICT_GRANTED) {
        take_next(multi);
        return;
    }
    if (to_wait)
        multi->waiting = multi->key;
    multi->misses += to_wait && !first;
    multi->again = to_wait && !first && ++multi->rounds < ROUNDS_MAX;
    release_taken(multi, answer);
}

/* Returns which key this round asks for next: the one that is waited for; after it, and where there
 * is none, in the order of bytes. NO_KEY: all are taken. */
static size_t next_to_take(const struct multi_lock *multi)
{
    if (!has_taken(multi) && multi->waiting < multi->key_count)
        return multi->waiting;
    for (size_t i = 0; i < multi->key_count; i++) {
        if (!multi->taken[multi->order[i]])
            return multi->order[i];
    }
    return NO_KEY;
}

/* Asks for the next key, or ends the acquisition, as all are taken. Only for the first key of a
 * round may the owner queue or listen: it waits for one. */
static void take_next(struct multi_lock *multi)
{
    size_t next = next_to_take(multi);

    if (next == NO_KEY) {
        finish_operation(multi);
        return;
    }
    struct acquire_request *one = set_key(multi, next);
    bool first = !has_taken(multi);
    one->queue &= first;
    one->listen &= first;
    acquire_key(multi, key_taken);
}

/* -- acquiring: queueing for all --------------------------------------------------------------- */

static void queue_for_next(struct multi_lock *multi);

/* Takes the answer to a place in one queue: at the front of it, the owner queues for the next key;
 * otherwise it waits for this one, and the round ends. */
static void on_queued(void *arg, const struct answer *answer)
{
    struct multi_lock *multi = arg;
    bool next =
        answer->cause == CAUSE_HELD && answer->refused.position == 1 && !answer->refused.holders;

    note_answer(multi, answer, is_taken(answer));
    multi->step++;
    if (answer->verdict == VERDICT_GRANTED || next) {
        queue_for_next(multi);
        return;
    }
    multi->again = false;
    release_taken(multi, answer);
}

/* Queues for the next key without taking it; when it is first everywhere, takes all. */
static void queue_for_next(struct multi_lock *multi)
{
    if (multi->step == multi->key_count) {
        take_next(multi);
        return;
    }
    set_key(multi, multi->order[multi->step])->queue_only = true;
    acquire_key(multi, on_queued);
}

/* -- acquiring: from the beginning ------------------------------------------------------------- */

/* Begins a round: tries all keys, first the one that is waited for; after too many misses queues
 * for all, from the first of them on. */
static void start_round(struct multi_lock *multi)
{
    memset(multi->taken, 0, sizeof multi->taken);
    set_granted(multi);
    if (multi->misses < MISSES_MAX) {
        take_next(multi);
    } else {
        multi->waiting = NO_KEY;
        multi->step = 0;
        queue_for_next(multi);
    }
}

/* Begins to acquire all keys, one after the other. For another owner than before, forgets what is
 * known of that one's keys. */
static void acquire_all_keys(struct multi_lock *multi, const struct acquire_request *request)
{
    const char *owner = request->owner;

    if (!multi->last_owner || strcmp(multi->last_owner, owner) != 0) {
        free(multi->last_owner);
        multi->last_owner = mem_strdup(owner);
        multi->waiting = NO_KEY;
        multi->misses = 0;
        multi->replaces = false;
        memset(multi->asked, 0, sizeof multi->asked);
        memset(multi->holds, 0, sizeof multi->holds);
    }
    /* The process that died may have had any of them, of which this one may wait for the first. */
    for (size_t i = 0; request->from_dead_agent && i < multi->key_count; i++)
        multi->holds[i] = HOLD_LOCK;
    multi->replaces |= request->replace;
    multi->rounds = 0;
    start_round(multi);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Starts an operation (store_ops.start). Those that are not about a lock of several keys pass to
 * the store below. */
static void start_operation(struct store *base, const struct operation *operation)
{
    struct multi_lock *multi = multi_of(base);
    const struct acquire_request *lock = operation_lock(operation);

    multi->keys = lock->keys;
    multi->key_count = lock->key_count;
    for (size_t i = 0; i < multi->key_count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(multi->keys[multi->order[at - 1]], multi->keys[i]) > 0; at--)
            multi->order[at] = multi->order[at - 1];
        multi->order[at] = i;
    }
    multi->begun = loop_now(multi->loop);
    multi->step = 0;
    set_granted(multi);
    switch (operation->verb) {
    case VERB_ACQUIRE: acquire_all_keys(multi, lock); break;
    case VERB_RENEW: ask_next(multi); break;
    case VERB_RELEASE:
        multi->waiting = NO_KEY;
        multi->misses = 0;
        ask_next(multi);
        break;
    default: store_start(multi->below, operation); break;
    }
}

/* Takes a grant by message. A lock can be handed over only where one key was requested. */
static void on_handed_over(void *arg, const struct answer *grant)
{
    struct multi_lock *multi = multi_of(arg);

    multi->holds[0] = HOLD_LOCK;
    store_granted(&multi->base, grant);
}

/* Closes the store (store_ops.close) and the one below. */
static void close_multi(struct store *base)
{
    struct multi_lock *multi = multi_of(base);

    store_close(multi->below);
    free(multi->last_owner);
    free(multi);
}

struct store *multi_lock_open(struct loop *loop, struct store *single)
{
    static const struct store_events events = {store_changed, on_handed_over};
    static const struct store_ops ops = {close_multi, start_operation, release_nowait};
    struct multi_lock *multi = mem_zeroed(sizeof *multi);

    multi->base.ops = &ops;
    multi->loop = loop;
    multi->below = single;
    multi->waiting = NO_KEY;
    store_on_event(single, &events, &multi->base);
    return &multi->base;
}
