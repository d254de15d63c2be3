/* A place in the queues, and waiting there. */
#include "store/sql/acquire.h"

#include <stdio.h>
#include <string.h>

#include "base/jitter.h"
#include "store/sql/queue.h"

/* How much sooner or later than after SQL_POLL_NS a waiter looks again, and after how long where
 * somebody calls it that may not be heard, as by way of a pooler. */
#define POLL_SPREAD_NS (50 * NS_PER_MS)
#define DEAF_POLL_NS   (1000 * NS_PER_MS)
/* Where nobody is called, so many of the first look, the further behind the more rarely: who is
 * second now may be first soon. */
#define POLL_PLACES 8
/* How long a waiter sleeps that is woken: the first one, which can go for other reasons as well,
 * and one behind it, which is to stay in its place. */
#define FIRST_SLEEP_NS  (1000 * NS_PER_MS)
#define BEHIND_SLEEP_NS (3000 * NS_PER_MS)
/* How long the server may take to wake it. */
#define WAKE_NS (1000 * NS_PER_MS)

/* -- taking ------------------------------------------------------------------------------------ */

static struct sql_claim claim_of(const struct lock_request *request)
{
    return (struct sql_claim){.owner = request->owner,
                              .who = request->who,
                              .mode = request->mode,
                              .limit = request->limit,
                              .no_nesting = request->no_nesting,
                              .lease = request->lease / NS_PER_MS * US_PER_MS};
}

/* The owner's places in the queues are given up, and whoever can go with it is called. */
static void hear_taken(struct sql_store *store)
{
    bool queued = false;

    store->answer.verdict = VERDICT_GRANTED;
    store->answer.from = store->read_at;
    for (size_t i = 0; i < store->read.count; i++) {
        const struct sql_holder *own =
            sql_row_find(&store->read.places[i].row, sql_request_of(store)->owner);
        store->answer.grants[i] = (struct lock_grant){.fence = own->fence, .slot = own->slot};
        queued |= store->read.places[i].queued;
    }
    store->rings = queued;
    if (queued)
        sql_leave_queues(store);
    else
        sql_finish(store);
}

/* The same owner again: its answer was lost. A lease that has ended was passed over by nobody. */
static bool has_all(const struct sql_store *store)
{
    const struct sql_place *first = store->read.places;

    if (sql_request_of(store)->mirror &&
        (!first->row.mirror.family || !sql_mirror_is_ours(first, &first->row.mirror)))
        return false;
    for (size_t i = 0; i < store->read.count; i++)
        if (!sql_row_find(&store->read.places[i].row, sql_request_of(store)->owner))
            return false;
    return true;
}

void sql_extend_all(struct sql_store *store, enum sql_mirror_need need)
{
    int64_t lease = sql_request_of(store)->lease / NS_PER_MS * US_PER_MS;

    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_holder *own =
            sql_row_find(&store->read.places[i].row, sql_request_of(store)->owner);
        own->lease = lease > 0 ? lease : own->lease;
        own->deadline = store->read.now + own->lease;
    }
    sql_swap_rows(store, need, hear_taken);
}

static void clean_all(struct sql_store *store)
{
    store->cut = false;
    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_place *place = &store->read.places[i];
        struct sql_holder *own = sql_row_find(&place->row, sql_request_of(store)->owner);
        if (own)
            sql_row_remove(&place->row, own);
        store->cut |= sql_row_clean(&place->row, store->read.now);
    }
}

static void take_all(struct sql_store *store)
{
    struct sql_claim claim = claim_of(sql_request_of(store));

    for (size_t i = 0; i < store->read.count; i++)
        sql_row_take(&store->read.places[i].row, &claim, store->read.now);
    if (sql_request_of(store)->mirror)
        sql_row_mirror(&store->read.places->row, &claim, sql_mirror_of(store, 0));
    sql_swap_rows(store, sql_request_of(store)->mirror ? MIRROR_FREE : MIRROR_ANY, hear_taken);
}

static bool is_misfit(struct sql_store *store)
{
    struct sql_claim claim = claim_of(sql_request_of(store));
    struct answer *answer = &store->answer;
    const struct sql_row *row = &store->read.places->row;

    if (sql_request_of(store)->mirror && sql_row_mirrored_until(row) > 0 &&
        sql_row_mirrors(row, claim.owner) &&
        strcmp(row->mirror.name, sql_mirror_of(store, 0)) != 0) {
        answer->verdict = VERDICT_REFUSED;
        answer->cause = CAUSE_MISFIT;
        snprintf(answer->text, sizeof answer->text,
                 "an ancestor of this process holds it with another mirror");
        return true;
    }
    for (size_t i = 0; i < store->read.count; i++) {
        if (!sql_row_is_misfit(&store->read.places[i].row, &claim, answer->text,
                               sizeof answer->text))
            continue;
        answer->verdict = VERDICT_REFUSED;
        answer->cause = CAUSE_MISFIT;
        answer->key = i;
        return true;
    }
    return false;
}

/* By anybody but the one as whom the claim's family would have it. */
static bool is_mirror_taken(const struct sql_store *store, const struct sql_claim *claim)
{
    const struct sql_place *place = store->read.places;
    struct sql_row would = {.holders = place->row.holders, .count = place->row.count};

    sql_row_mirror(&would, claim, sql_mirror_of(store, 0));
    bool taken = sql_mirror_is_taken(place, &would.mirror);
    sql_row_forget_mirror(&would);
    return taken;
}

static struct sql_place *find_obstacle(struct sql_store *store)
{
    struct sql_claim claim = claim_of(sql_request_of(store));
    struct sql_place *first = store->read.places;
    struct sql_place *obstacle = sql_reading_obstacle(&store->read, &claim);

    first->foreign = !obstacle && sql_request_of(store)->mirror && is_mirror_taken(store, &claim);
    return first->foreign ? first : obstacle;
}

/* -- looking again ----------------------------------------------------------------------------- */

/* left_ms: of a lock that nobody calls about when it is given back; 0: it is none. */
static void poll_later(struct sql_store *store, int64_t position, int64_t left_ms)
{
    bool notifies = store->dialect->notifies && left_ms == 0;
    int64_t ns = DEAF_POLL_NS;

    if (!sql_request_of(store)->listen || position > (notifies ? 1 : POLL_PLACES))
        return;
    if (!notifies)
        ns = jitter_spread(SQL_POLL_NS, POLL_SPREAD_NS) * (position + 1) / 2;
    if (left_ms > 0 && left_ms * NS_PER_MS < ns)
        ns = left_ms * NS_PER_MS;
    loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), ns));
}

/* If it can be woken it goes to sleep, when this operation has ended. Of a semaphore, it is woken
 * by one of the holders alone. */
static bool sleep_soon(struct sql_store *store, const struct sql_place *place)
{
    struct sql_claim claim = claim_of(sql_request_of(store));
    int64_t left = store->answer.left_ms * NS_PER_MS, ns = BEHIND_SLEEP_NS;

    if (!sql_request_of(store)->listen || !store->dialect->bells || place->foreign ||
        !sql_bell_choose(&store->bell, place, &claim, loop_now(store->loop)))
        return false;
    if (place->ahead[place->depth] == 0) {
        ns = claim.mode == LOCK_LIMIT ? jitter_spread(SQL_POLL_NS, POLL_SPREAD_NS) : FIRST_SLEEP_NS;
        ns = left > 0 && left < ns ? left : ns;
    }
    store->bell.sleep = ns;
    store->tired = true;
    loop_arm(store->loop, &store->poll, loop_now(store->loop));
    return true;
}

/* The server takes it for a deadlock where more than some thirty sleep one behind the other: one of
 * them tries again when those before it are fewer. */
static void wake(void *arg, const struct sql_reply *reply)
{
    struct sql_store *store = arg;

    store->asleep = false;
    sql_bell_wake(&store->bell, reply, moment_now());
    store->tired = !store->done && reply->failed && reply->error == WIRE_CONFLICT;
    if (store->done)
        sql_start(store);
    else if (store->tired)
        loop_arm(store->loop, &store->poll,
                 moment_plus(loop_now(store->loop), jitter_spread(SQL_POLL_NS, POLL_SPREAD_NS)));
    else
        store_poke(&store->base);
}

void sql_poll_due(struct loop_timer *timer)
{
    struct sql_store *store = timer->owner;
    struct sql_text text = sql_text_of(store);

    if (!store->tired) {
        store_poke(&store->base);
        return;
    }
    store->tired = false;
    store->asleep = true;
    store->wakes = moment_plus(moment_now(), store->bell.sleep + WAKE_NS);
    sql_bell_sleep(&store->bell, &text);
    sql_driver_ask(store->driver, text.bytes, store->wakes, wake, store);
    sql_text_end(&text);
}

/* -- a place in the queues --------------------------------------------------------------------- */

static void refuse_held(struct sql_store *store, struct sql_place *place)
{
    const struct lock_request *request = sql_request_of(store);
    const struct sql_holder *oldest = sql_row_oldest(&place->row);
    struct answer *answer = &store->answer;

    answer->verdict = VERDICT_REFUSED;
    answer->cause = CAUSE_HELD;
    answer->maybe_done = store->unheard; /* by a statement that is executed late */
    answer->from = store->read_at;
    answer->key = (size_t)(place - store->read.places);
    answer->position = place->ahead[place->depth] + (request->queue || request->stand);
    if (place->foreign) {
        sql_tell_mirror(store, place, sql_mirror_of(store, 0), true);
    } else if (place->blocked) {
        answer->holders = place->holders > 0 ? place->holders : 1;
        answer->left_ms = (place->till - store->read.now) / US_PER_MS + 1;
        answer->holder = sql_row_party(&place->row, oldest, store->read.now);
    } else {
        answer->first = place->first[place->depth];
    }
    if (!sleep_soon(store, place))
        poll_later(store, answer->position, place->foreign ? answer->left_ms : 0);
    sql_finish(store);
}

/* It may be free since it was read: whoever gives it back calls those that it finds in the queue. A
 * first try does not listen, and is followed by one that does. */
static void hear_joined(struct sql_store *store, const struct sql_reply *reply)
{
    struct sql_place *obstacle = find_obstacle(store);

    (void)reply;
    store->joined = true;
    if (sql_request_of(store)->listen && (store->fresh || store->called))
        sql_start(store);
    else
        refuse_held(store, obstacle ? obstacle : store->read.places);
}

static void join_queues(struct sql_store *store)
{
    struct sql_text text = sql_text_of(store);

    sql_queue_join(&text, &store->read, sql_request_of(store));
    sql_ask(store, &text, true, hear_joined);
}

static void hear_listening(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    sql_note_listening(store, sql_request_of(store)->owner);
    store->fresh = true;
    join_queues(store);
}

static void listen_first(struct sql_store *store)
{
    struct sql_text text = sql_text_of(store);

    sql_queue_listen(&text, sql_request_of(store)->owner);
    sql_ask(store, &text, false, hear_listening);
}

static void enter_queues(struct sql_store *store, struct sql_place *obstacle)
{
    for (size_t i = 0; i < store->read.count; i++)
        store->fresh |= !store->read.places[i].live;
    if (sql_request_of(store)->listen && store->dialect->notifies &&
        !sql_is_listening(store, sql_request_of(store)->owner))
        listen_first(store);
    else if (sql_queue_holds(&store->read, sql_request_of(store)->listen))
        refuse_held(store, obstacle);
    else
        join_queues(store);
}

/* -- acquiring --------------------------------------------------------------------------------- */

/* Where the server's clock was set back, a lease that nobody renews any more would end as much
 * later: what it is cut to is written, so that it is not cut anew each time. */
static void decide_acquire(struct sql_store *store)
{
    const struct lock_request *request = sql_request_of(store);

    if (has_all(store)) {
        sql_extend_all(store, request->mirror ? MIRROR_OURS : MIRROR_ANY);
        return;
    }
    clean_all(store);
    bool misfit = is_misfit(store);
    struct sql_place *obstacle = find_obstacle(store);
    struct sql_place *told = obstacle ? obstacle : store->read.places;
    if (!misfit && !obstacle && !request->stand)
        take_all(store);
    else if (store->cut)
        sql_swap_rows(store, MIRROR_ANY, sql_begin_anew);
    else if (misfit)
        sql_finish(store);
    else if (store->called && ++store->attempts < SQL_ATTEMPTS_MAX)
        sql_start(store);
    else if ((request->queue || request->stand) && !store->joined)
        enter_queues(store, told);
    else
        refuse_held(store, told);
}

void sql_acquire(struct store *base, const struct lock_request *request, struct moment until,
                 store_done *done, void *arg)
{
    struct sql_store *store = sql_store_of(base);

    sql_begin(store, SQL_ACQUIRE, decide_acquire, request->keys, request->key_count, until, done,
              arg);
    sql_reading_queues(&store->read, request->owner);
    if (store->asleep && moment_reached(moment_plus(until, -WAKE_NS), store->wakes))
        sql_get_up(store);
    if (!store->asleep)
        sql_start(store);
}
