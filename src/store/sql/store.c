/* The operations, statement by statement. */
#include "store/sql/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/jitter.h"
#include "base/mem.h"
#include "base/text.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/sql/bell.h"
#include "store/sql/dialect.h"
#include "store/sql/driver.h"
#include "store/sql/failure.h"
#include "store/sql/latch.h"
#include "store/sql/mirror.h"
#include "store/sql/queue.h"
#include "store/sql/reading.h"
#include "store/sql/row.h"
#include "store/sql/survey.h"
#include "store/sql/swap.h"

/* How often a waiter that may be next looks again where nobody calls it, and where somebody does
 * that may not be heard, as by way of a pooler. */
#define POLL_NS        (200 * NS_PER_MS)
#define POLL_SPREAD_NS (50 * NS_PER_MS)
#define DEAF_POLL_NS   (1000 * NS_PER_MS)
/* Where nobody is called, who waits for a latch looks again after a tenth of the time that it has
 * waited: not sooner than after POLL_NS, not later than after this. */
#define LATCH_POLL_NS (1000 * NS_PER_MS)
/* Stands where an owner would whose own place in a queue does not count. */
#define NOBODY "latch"
/* Where nobody is called, so many of the first look, the further behind the more rarely: who is
 * second now may be first soon. */
#define POLL_PLACES 8
/* How long a waiter sleeps that is woken: the first one, which can go for other reasons as well,
 * and one behind it, which is to stay in its place. */
#define FIRST_SLEEP_NS  (1000 * NS_PER_MS)
#define BEHIND_SLEEP_NS (3000 * NS_PER_MS)
/* How long the server may take to wake it. */
#define WAKE_NS (1000 * NS_PER_MS)
/* How often an operation begins anew because others were quicker. */
#define ATTEMPTS_MAX 200
/* A release that nobody waits for. */
#define LAST_CALL_NS (2 * NS_PER_SEC)

struct sql_store {
    struct store base;
    struct loop *loop;
    struct store_address address;
    const struct sql_dialect *dialect;
    struct sql_driver *driver;
    char *prefix; /* NULL: any */
    struct loop_timer poll;

    /* What this connection listens for. */
    unsigned listening; /* the number of the connection; 0: none */
    char listener[OWNER_SIZE]; /* whose calls it hears: an owner's, or a latch's by its channel */

    /* Where nobody is called. */
    struct sql_bell bell;
    bool tired;          /* it goes to sleep when "poll" fires */
    bool asleep;         /* by the bell: the connection is in use */
    struct moment wakes; /* at the latest */

    /* The operation under way; "read" stays until the next. */
    store_done *done; /* NULL: none */
    void *arg;
    struct moment until;
    void (*again)(struct sql_store *store);                           /* to begin anew */
    void (*decide)(struct sql_store *store);                          /* when all is read */
    void (*heard)(struct sql_store *store, const struct sql_reply *); /* the statement's answer */
    void (*swapped)(struct sql_store *store);                         /* when all is written */
    bool writes;    /* the statement changes something */
    bool optional;  /* it is the last one, and may fail */
    bool uncertain; /* a release: an acquisition may be under way */
    bool abandoned; /* a change that was given up, of this operation or before, may be done yet */
    bool joined;    /* the owner has entered the queues */
    bool fresh;     /* it was in none of them, or was not listening */
    bool called;    /* by a notification since it was read */
    bool rings;     /* when it has left the queues */
    bool cut;       /* leases in the rows end later than they are long */
    bool sure;      /* "read" is what the store has, as far as answers tell */
    bool unheard;   /* a change may have been done without an answer */
    bool retried;   /* over another connection */
    bool forces;    /* a lock is taken away */
    bool purge;     /* everybody leaves the queues */
    bool calls;     /* those who wait for a latch, in the statement that writes it */
    unsigned attempts; /* that others were quicker in */
    size_t statement;  /* of the schema */
    struct sql_reading read;
    struct moment read_at;
    struct moment waiting_since; /* for a latch; zero: it does not wait yet */
    struct answer answer;
};

static void decide_latch(struct sql_store *store);
static void add_latch_call(struct sql_text *text, const struct sql_store *store);

static struct sql_store *of(struct store *base)
{
    return (struct sql_store *)(void *)base;
}

static const struct lock_request *request_of(const struct sql_store *store)
{
    return &store->base.requests.lock;
}

/* Who holds, or would hold; NULL where nobody in particular does. */
static const char *owner_of(const struct sql_store *store)
{
    return store->forces ? NULL : request_of(store)->owner;
}

/* Whose places in the queues are told from all others. */
static const char *reader_of(const struct sql_store *store)
{
    return store->decide == decide_latch ? NOBODY : request_of(store)->owner;
}

static struct sql_text text_of(const struct sql_store *store)
{
    return (struct sql_text){.dialect = store->dialect, .table = store->address.urls->table};
}

/* -- the course of an operation ---------------------------------------------------------------- */

static void start(struct sql_store *store);
static void decide_acquire(struct sql_store *store);
static void decide_renewal(struct sql_store *store);
static void decide_theirs(struct sql_store *store);
static void hear_all(struct sql_store *store, const struct sql_reply *reply);

static void finish(struct sql_store *store)
{
    store_done *done = store->done;

    store->done = NULL;
    done(store->arg, &store->answer);
}

static void fail_op(struct sql_store *store, enum cause cause, const char *text)
{
    answer_fail(&store->answer, cause, "%s", text);
    store->answer.maybe_done = store->unheard;
    finish(store);
}

static void statement_failed(struct sql_store *store, const struct sql_reply *reply)
{
    store->unheard |= store->writes && reply->maybe_done;
    store->abandoned |= store->unheard;
    bool deaf = store->heard == hear_all && sql_bell_fails(&store->bell, &store->read, reply);
    if (deaf || (reply->error == WIRE_CONFLICT && ++store->attempts < ATTEMPTS_MAX)) {
        store->again(store);
    } else if (store->optional) {
        finish(store);
    } else if (reply->aged && !store->retried) {
        store->retried = true;
        store->again(store);
    } else {
        sql_answer_failure(&store->answer, store->address.urls, reply);
        store->answer.maybe_done = store->unheard;
        finish(store);
    }
}

static void replied(void *arg, const struct sql_reply *reply)
{
    struct sql_store *store = arg;

    if (reply->failed)
        statement_failed(store, reply);
    else
        store->heard(store, reply);
}

/* Takes the text over. */
static void ask(struct sql_store *store, struct sql_text *text, bool writes,
                void (*heard)(struct sql_store *, const struct sql_reply *))
{
    store->heard = heard;
    store->writes = writes;
    sql_driver_ask(store->driver, text->bytes, store->until, replied, store);
    sql_text_end(text);
}

/* Nothing else gets through the connection before the sleep is over, so that one is given up; the
 * server rings its bells when it notices. */
static void get_up(struct sql_store *store)
{
    if (store->asleep)
        sql_driver_give_up(store->driver);
    store->asleep = false;
}

static void begin(struct sql_store *store, void (*decide)(struct sql_store *),
                  const char *const *keys, size_t count, struct moment until, store_done *done,
                  void *arg)
{
    loop_disarm(store->loop, &store->poll);
    store->tired = false;
    sql_reading_begin(&store->read, store->prefix, keys, count);
    store->decide = decide;
    store->done = done;
    store->arg = arg;
    store->until = until;
    store->again = start;
    store->optional = store->uncertain = store->joined = store->fresh = store->called = false;
    store->sure = store->unheard = store->retried = store->forces = store->purge = false;
    store->rings = store->calls = false;
    store->attempts = 0;
    store->answer = (struct answer){0};
}

/* -- reading ----------------------------------------------------------------------------------- */

static void refuse_damaged(struct sql_store *store)
{
    store->answer.verdict = VERDICT_REFUSED;
    store->answer.cause = CAUSE_MISFIT;
    snprintf(store->answer.text, sizeof store->answer.text,
             "the database's row of that name holds other data, or is damaged");
    finish(store);
}

static void hear_mirrors(struct sql_store *store, const struct sql_reply *reply)
{
    if (sql_mirror_take(store->read.places, store->read.count, reply))
        store->decide(store);
    else
        fail_op(store, CAUSE_UNFIT, "the table shedlock holds other data");
}

/* The mirror that the operation depends on; NULL: on none. */
static const char *mirror_of(const struct sql_store *store, size_t i)
{
    const struct sql_row *row = &store->read.places[i].row;
    const char *wanted = request_of(store)->mirror;

    if (store->decide == decide_theirs)
        return strchr(store->base.requests.force.mirror, ':') + 1;
    if (store->decide == decide_acquire)
        return wanted ? strchr(wanted, ':') + 1 : NULL;
    if (store->decide == decide_renewal && sql_row_mirrors(row, request_of(store)->owner))
        return row->mirror.name;
    return NULL;
}

/* False if it depends on none. */
static bool ask_mirrors(struct sql_store *store)
{
    const char *names[LOCK_KEYS_MAX] = {NULL};
    struct sql_text text = text_of(store);
    bool some = false;

    for (size_t i = 0; i < store->read.count; i++) {
        names[i] = mirror_of(store, i);
        some |= names[i] != NULL;
    }
    if (!some)
        return false;
    sql_mirror_query(&text, names, store->read.count);
    ask(store, &text, false, hear_mirrors);
    return true;
}

static void hear_all(struct sql_store *store, const struct sql_reply *reply)
{
    store->read_at = reply->sent;
    store->answer = (struct answer){0};
    store->sure = sql_reading_take(&store->read, reply);
    if (store->dialect->bells)
        sql_bell_note(&store->bell, &store->read, request_of(store)->owner,
                      sql_driver_connection(store->driver));
    if (!store->sure)
        refuse_damaged(store);
    else if (!ask_mirrors(store))
        store->decide(store);
}

static void start(struct sql_store *store)
{
    const struct lock_request *request = request_of(store);
    struct sql_text text = text_of(store);

    if (store->dialect->bells &&
        (store->decide == decide_acquire || store->decide == decide_renewal))
        sql_bell_prepare(&store->bell, &store->read, request->owner,
                         request->listen && store->decide == decide_acquire &&
                             request->mode != LOCK_EXCLUSIVE,
                         sql_driver_connection(store->driver));
    sql_reading_query(&store->read, reader_of(store), &text);
    store->called = false;
    ask(store, &text, false, hear_all);
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Somebody else was quicker, or the rows are others now. */
static void begin_anew(struct sql_store *store)
{
    if (++store->attempts < ATTEMPTS_MAX)
        store->again(store);
    else
        fail_op(store, CAUSE_NOT_READY, "others change its rows all the time");
}

static void hear_swapped(struct sql_store *store, const struct sql_reply *reply)
{
    store->sure = reply->rows != 1 || strcmp(reply->values[0], "0") != 0;
    if (store->sure)
        store->swapped(store);
    else
        begin_anew(store);
}

static void swap_all(struct sql_store *store, enum sql_mirror_need need)
{
    struct sql_text text = text_of(store);

    if (!sql_swap(&text, &store->read, owner_of(store), need)) {
        sql_text_end(&text);
        fail_op(store, CAUSE_UNFIT,
                store->decide == decide_latch
                    ? "the latch has counted more than a row of a database can hold"
                    : "it has too many holders for a row of a database");
        return;
    }
    if (store->calls)
        add_latch_call(&text, store);
    store->sure = false;
    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_row *row = &store->read.places[i].row;
        row->version++;
        if (sql_row_mirrored_until(row) == 0)
            sql_row_forget_mirror(row);
    }
    ask(store, &text, true, hear_swapped);
}

static bool has_mirror(const struct sql_store *store)
{
    bool has = false;

    for (size_t i = 0; i < store->read.count; i++)
        has |= store->read.places[i].row.mirror.family != NULL;
    return has;
}

static void hear_made(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    begin_anew(store);
}

/* Free rows say nothing: it does not matter who makes them, and when. False if all are there. */
static bool make_rows(struct sql_store *store, enum sql_mirror_need need)
{
    struct sql_text text = text_of(store);
    const struct sql_place *place = store->read.places;
    bool makes = has_mirror(store) && sql_swap_make(&text, &store->read);

    if (!makes && need == MIRROR_FREE && !place->theirs.by) {
        sql_mirror_make(&text, place->row.mirror.name);
        makes = true;
    }
    if (makes)
        ask(store, &text, false, hear_made);
    return makes;
}

/* Writes all rows, or none if one of them has changed meanwhile. */
static void swap_rows(struct sql_store *store, enum sql_mirror_need need,
                      void (*swapped)(struct sql_store *))
{
    store->swapped = swapped;
    if (moment_reached(store->until, moment_now()))
        fail_op(store, CAUSE_UNREACHABLE, "the request took too long");
    else if (!make_rows(store, need))
        swap_all(store, need);
}

/* Takes the owner out of the queues, or everybody, and calls whoever is next. */
static void add_leave(struct sql_text *text, const struct sql_store *store)
{
    const char *owner = request_of(store)->owner;

    sql_queue_leave(text, &store->read, store->purge ? NULL : owner ? owner : "");
    if (store->dialect->notifies)
        sql_queue_call(text, &store->read);
}

static bool has_bell(const struct sql_store *store, enum sql_bell_kind kind)
{
    return sql_bell_has(&store->bell, kind, sql_driver_connection(store->driver));
}

/* False if there is nothing to ring. */
static bool ring(struct sql_store *store, bool both, void (*again)(struct sql_store *),
                 void (*heard)(struct sql_store *, const struct sql_reply *))
{
    struct sql_text text = text_of(store);

    if (!has_bell(store, SQL_BELL_TURN) && !(both && has_bell(store, SQL_BELL_OWN)))
        return false;
    sql_bell_ring(&store->bell, both, &text);
    store->optional = true;
    store->again = again;
    ask(store, &text, false, heard);
    return true;
}

static void hear_last_ring(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    sql_bell_rung(&store->bell, store->decide != decide_acquire);
    finish(store);
}

/* Whoever is woken finds the owner gone. */
static void hear_left(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    if (!store->rings || !ring(store, store->decide != decide_acquire, finish, hear_last_ring))
        finish(store);
}

/* The last statement of an operation whose answer is known: what it does happens by itself after a
 * while, too. */
static void leave_queues(struct sql_store *store)
{
    struct sql_text text = text_of(store);

    add_leave(&text, store);
    store->optional = true;
    store->again = leave_queues;
    ask(store, &text, false, hear_left);
}

/* -- listening --------------------------------------------------------------------------------- */

static void note_listening(struct sql_store *store, const char *listener)
{
    store->listening = sql_driver_connection(store->driver);
    snprintf(store->listener, sizeof store->listener, "%s", listener);
}

static bool is_listening(const struct sql_store *store, const char *listener)
{
    return store->listening == sql_driver_connection(store->driver) &&
           strcmp(store->listener, listener) == 0;
}

/* -- acquiring --------------------------------------------------------------------------------- */

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
            sql_row_find(&store->read.places[i].row, request_of(store)->owner);
        store->answer.grants[i] = (struct lock_grant){.fence = own->fence, .slot = own->slot};
        queued |= store->read.places[i].queued;
    }
    store->rings = queued;
    if (queued)
        leave_queues(store);
    else
        finish(store);
}

/* The same owner again: its answer was lost. A lease that has ended was passed over by nobody. */
static bool has_all(const struct sql_store *store)
{
    const struct sql_place *first = store->read.places;

    if (request_of(store)->mirror &&
        (!first->row.mirror.family || !sql_mirror_is_ours(first, &first->row.mirror)))
        return false;
    for (size_t i = 0; i < store->read.count; i++)
        if (!sql_row_find(&store->read.places[i].row, request_of(store)->owner))
            return false;
    return true;
}

static void extend_all(struct sql_store *store, enum sql_mirror_need need)
{
    int64_t lease = request_of(store)->lease / NS_PER_MS * US_PER_MS;

    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_holder *own = sql_row_find(&store->read.places[i].row, request_of(store)->owner);
        own->lease = lease > 0 ? lease : own->lease;
        own->deadline = store->read.now + own->lease;
    }
    swap_rows(store, need, hear_taken);
}

static void clean_all(struct sql_store *store)
{
    store->cut = false;
    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_place *place = &store->read.places[i];
        struct sql_holder *own = sql_row_find(&place->row, request_of(store)->owner);
        if (own)
            sql_row_remove(&place->row, own);
        store->cut |= sql_row_clean(&place->row, store->read.now);
    }
}

static void take_all(struct sql_store *store)
{
    struct sql_claim claim = claim_of(request_of(store));

    for (size_t i = 0; i < store->read.count; i++)
        sql_row_take(&store->read.places[i].row, &claim, store->read.now);
    if (request_of(store)->mirror)
        sql_row_mirror(&store->read.places->row, &claim, mirror_of(store, 0));
    swap_rows(store, request_of(store)->mirror ? MIRROR_FREE : MIRROR_ANY, hear_taken);
}

static bool is_misfit(struct sql_store *store)
{
    struct sql_claim claim = claim_of(request_of(store));
    struct answer *answer = &store->answer;
    const struct sql_row *row = &store->read.places->row;

    if (request_of(store)->mirror && sql_row_mirrored_until(row) > 0 &&
        sql_row_mirrors(row, claim.owner) && strcmp(row->mirror.name, mirror_of(store, 0)) != 0) {
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

    sql_row_mirror(&would, claim, mirror_of(store, 0));
    bool taken = sql_mirror_is_taken(place, &would.mirror);
    sql_row_forget_mirror(&would);
    return taken;
}

static struct sql_place *find_obstacle(struct sql_store *store)
{
    struct sql_claim claim = claim_of(request_of(store));
    struct sql_place *first = store->read.places;
    struct sql_place *obstacle = sql_reading_obstacle(&store->read, &claim);

    first->foreign = !obstacle && request_of(store)->mirror && is_mirror_taken(store, &claim);
    return first->foreign ? first : obstacle;
}

/* left_ms: of a lock that nobody calls about when it is given back; 0: it is none. */
static void poll_later(struct sql_store *store, int64_t position, int64_t left_ms)
{
    bool notifies = store->dialect->notifies && left_ms == 0;
    int64_t ns = DEAF_POLL_NS;

    if (!request_of(store)->listen || position > (notifies ? 1 : POLL_PLACES))
        return;
    if (!notifies)
        ns = jitter_spread(POLL_NS, POLL_SPREAD_NS) * (position + 1) / 2;
    if (left_ms > 0 && left_ms * NS_PER_MS < ns)
        ns = left_ms * NS_PER_MS;
    loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), ns));
}

/* If it can be woken it goes to sleep, when this operation has ended. Of a semaphore, it is woken
 * by one of the holders alone. */
static bool sleep_soon(struct sql_store *store, const struct sql_place *place)
{
    struct sql_claim claim = claim_of(request_of(store));
    int64_t left = store->answer.left_ms * NS_PER_MS, ns = BEHIND_SLEEP_NS;

    if (!request_of(store)->listen || !store->dialect->bells || place->foreign ||
        !sql_bell_choose(&store->bell, place, &claim, loop_now(store->loop)))
        return false;
    if (place->ahead[place->depth] == 0) {
        ns = claim.mode == LOCK_LIMIT ? jitter_spread(POLL_NS, POLL_SPREAD_NS) : FIRST_SLEEP_NS;
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
        start(store);
    else if (store->tired)
        loop_arm(store->loop, &store->poll,
                 moment_plus(loop_now(store->loop), jitter_spread(POLL_NS, POLL_SPREAD_NS)));
    else
        store_poke(&store->base);
}

static void poll_due(struct loop_timer *timer)
{
    struct sql_store *store = timer->owner;
    struct sql_text text = text_of(store);

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

/* Who has the other program's lock, or has taken it, in place of a holder. */
static void tell_mirror(struct sql_store *store, const struct sql_place *place, const char *name,
                        bool taken)
{
    const struct sql_foreign *theirs = &place->theirs;
    struct answer *answer = &store->answer;

    answer->foreign = true;
    answer->holders = taken;
    answer->left_ms = theirs->left > 0 ? theirs->left / US_PER_MS + 1 : 0;
    snprintf(answer->text, sizeof answer->text, "%s", name);
    if (taken)
        text_append(answer->text, sizeof answer->text, " (%.120s)", theirs->by);
}

static void refuse_held(struct sql_store *store, struct sql_place *place)
{
    const struct lock_request *request = request_of(store);
    const struct sql_holder *oldest = sql_row_oldest(&place->row);
    struct answer *answer = &store->answer;

    answer->verdict = VERDICT_REFUSED;
    answer->cause = CAUSE_HELD;
    answer->maybe_done = store->unheard; /* by a statement that is executed late */
    answer->from = store->read_at;
    answer->key = (size_t)(place - store->read.places);
    answer->position = place->ahead[place->depth] + (request->queue || request->stand);
    if (place->foreign) {
        tell_mirror(store, place, mirror_of(store, 0), true);
    } else if (place->blocked) {
        answer->holders = place->holders > 0 ? place->holders : 1;
        answer->left_ms = (place->till - store->read.now) / US_PER_MS + 1;
        answer->holder = sql_row_party(&place->row, oldest, store->read.now);
    } else {
        answer->first = place->first[place->depth];
    }
    if (!sleep_soon(store, place))
        poll_later(store, answer->position, place->foreign ? answer->left_ms : 0);
    finish(store);
}

/* It may be free since it was read: whoever gives it back calls those that it finds in the queue. A
 * first try does not listen, and is followed by one that does. */
static void hear_joined(struct sql_store *store, const struct sql_reply *reply)
{
    struct sql_place *obstacle = find_obstacle(store);

    (void)reply;
    store->joined = true;
    if (request_of(store)->listen && (store->fresh || store->called))
        start(store);
    else
        refuse_held(store, obstacle ? obstacle : store->read.places);
}

static void join_queues(struct sql_store *store)
{
    struct sql_text text = text_of(store);

    sql_queue_join(&text, &store->read, request_of(store));
    ask(store, &text, true, hear_joined);
}

static void hear_listening(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    note_listening(store, request_of(store)->owner);
    store->fresh = true;
    join_queues(store);
}

static void listen_first(struct sql_store *store)
{
    struct sql_text text = text_of(store);

    sql_queue_listen(&text, request_of(store)->owner);
    ask(store, &text, false, hear_listening);
}

static void enter_queues(struct sql_store *store, struct sql_place *obstacle)
{
    for (size_t i = 0; i < store->read.count; i++)
        store->fresh |= !store->read.places[i].live;
    if (request_of(store)->listen && store->dialect->notifies &&
        !is_listening(store, request_of(store)->owner))
        listen_first(store);
    else if (sql_queue_holds(&store->read, request_of(store)->listen))
        refuse_held(store, obstacle);
    else
        join_queues(store);
}

/* Where the server's clock was set back, a lease that nobody renews any more would end as much
 * later: what it is cut to is written, so that it is not cut anew each time. */
static void decide_acquire(struct sql_store *store)
{
    const struct lock_request *request = request_of(store);

    if (has_all(store)) {
        extend_all(store, request->mirror ? MIRROR_OURS : MIRROR_ANY);
        return;
    }
    clean_all(store);
    bool misfit = is_misfit(store);
    struct sql_place *obstacle = find_obstacle(store);
    struct sql_place *told = obstacle ? obstacle : store->read.places;
    if (!misfit && !obstacle && !request->stand)
        take_all(store);
    else if (store->cut)
        swap_rows(store, MIRROR_ANY, begin_anew);
    else if (misfit)
        finish(store);
    else if (store->called && ++store->attempts < ATTEMPTS_MAX)
        start(store);
    else if ((request->queue || request->stand) && !store->joined)
        enter_queues(store, told);
    else
        refuse_held(store, told);
}

static void sql_acquire(struct store *base, const struct lock_request *request, struct moment until,
                        store_done *done, void *arg)
{
    struct sql_store *store = of(base);

    begin(store, decide_acquire, request->keys, request->key_count, until, done, arg);
    sql_reading_queues(&store->read, request->owner);
    if (store->asleep && moment_reached(moment_plus(until, -WAKE_NS), store->wakes))
        get_up(store);
    if (!store->asleep)
        start(store);
}

/* -- renewing and releasing -------------------------------------------------------------------- */

/* Who has it now, to tell one who does not. */
static void refuse_stranger(struct sql_store *store, struct sql_place *place, enum cause cause)
{
    struct answer *answer = &store->answer;

    sql_row_clean(&place->row, store->read.now);
    const struct sql_holder *oldest = sql_row_oldest(&place->row);
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
    answer->key = (size_t)(place - store->read.places);
    answer->holders = (int64_t)place->row.count;
    if (place->row.latch) {
        answer->cause = CAUSE_MISFIT;
        snprintf(answer->text, sizeof answer->text, SQL_LATCH_IS_ONE);
    }
    if (!oldest)
        return;
    answer->holder = sql_row_party(&place->row, oldest, store->read.now);
    answer->left_ms = answer->holder.left_ms + 1;
}

/* The owner's entry; NULL if it holds nothing there. */
static struct sql_holder *find_own(const struct sql_store *store, struct sql_place *place)
{
    struct sql_holder *own = sql_row_find(&place->row, request_of(store)->owner);

    return own && request_of(store)->strict && own->deadline <= store->read.now ? NULL : own;
}

/* A mirror that is not ours any more takes the lock with it, however sound our own row is. */
static bool is_lost(struct sql_store *store, struct sql_place *place)
{
    const struct sql_mirror *mirror = &place->row.mirror;

    if (find_own(store, place) && (!sql_row_mirrors(&place->row, request_of(store)->owner) ||
                                   sql_mirror_is_ours(place, mirror)))
        return false;
    store->answer.cause = CAUSE_NOT_HOLDER;
    if (find_own(store, place))
        tell_mirror(store, place, mirror->name, sql_mirror_is_others(place, mirror));
    else
        refuse_stranger(store, place, CAUSE_NOT_HOLDER);
    store->answer.verdict = VERDICT_REFUSED;
    store->answer.key = (size_t)(place - store->read.places);
    return true;
}

static void decide_renewal(struct sql_store *store)
{
    for (size_t i = 0; i < store->read.count; i++) {
        if (!is_lost(store, &store->read.places[i]))
            continue;
        finish(store);
        return;
    }
    extend_all(store, MIRROR_OURS);
}

static void sql_renew(struct store *base, const struct lock_request *request, struct moment until,
                      store_done *done, void *arg)
{
    begin(of(base), decide_renewal, request->keys, request->key_count, until, done, arg);
    get_up(of(base));
    start(of(base));
}

/* The notes behind a holder that is kept after its command has ended. */
static void print_kept(const struct lock_end *end, char *out, size_t size)
{
    int used = snprintf(out, size, LOCK_NOTE_KEPT "=1");

    if (end->known)
        snprintf(out + used, size - (size_t)used, " " LOCK_NOTE_RAN "=%" PRId64 " %s=%d",
                 end->ran_ms > 0 ? end->ran_ms : 1, end->signal ? LOCK_NOTE_SIGNAL : LOCK_NOTE_EXIT,
                 end->signal ? end->signal : end->status);
}

static void give_back(const struct sql_store *store, struct sql_place *place,
                      struct sql_holder *own)
{
    int64_t at_least = request_of(store)->at_least / NS_PER_MS * US_PER_MS;
    char notes[80];

    if (at_least > 0 && own->since + at_least > store->read.now) {
        print_kept(&request_of(store)->end, notes, sizeof notes);
        sql_row_keep(own, at_least, store->read.now, notes);
    } else {
        sql_row_remove(&place->row, own);
    }
}

static void hear_rung(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    sql_bell_rung(&store->bell, true);
    leave_queues(store);
}

/* Whoever is next is called after the row was written: it then finds it free. */
static void hear_released(struct sql_store *store)
{
    if (!ring(store, true, leave_queues, hear_rung))
        leave_queues(store);
}

/* An uncertain one writes rows that it does not change, too: an acquisition that is still on its
 * way then fits no version. */
static void decide_release(struct sql_store *store)
{
    bool changed = false;
    struct sql_place *missing = NULL;

    for (size_t i = store->read.count; i-- > 0;) {
        struct sql_place *place = &store->read.places[i];
        struct sql_holder *own = find_own(store, place);
        changed |= own != NULL;
        if (own)
            give_back(store, place, own);
        else
            missing = place;
    }
    store->answer.verdict = VERDICT_GRANTED;
    if (missing && !store->unheard)
        refuse_stranger(store, missing, CAUSE_NOT_HOLDER);
    store->rings = true;
    if (changed || store->uncertain)
        swap_rows(store, MIRROR_ANY, hear_released);
    else
        leave_queues(store);
}

static void sql_release(struct store *base, const struct lock_request *request, bool uncertain,
                        struct moment until, store_done *done, void *arg)
{
    struct sql_store *store = of(base);

    begin(store, decide_release, request->keys, request->key_count, until, done, arg);
    store->uncertain = uncertain || store->abandoned;
    get_up(store);
    start(store);
}

/* Whether the rows are known. The version that one would have is not enough: where the statement
 * that was to write it has failed, somebody else's row may have that version. */
static bool knows(const struct sql_store *store, const struct lock_request *request)
{
    if (!store->sure || store->read.count != request->key_count)
        return false;
    for (size_t i = 0; i < store->read.count; i++) {
        char *name = key_in_store(store->prefix, request->keys[i]);
        bool same = strcmp(name, store->read.places[i].name) == 0;
        free(name);
        if (!same || !sql_row_find(&store->read.places[i].row, request->owner))
            return false;
    }
    return true;
}

/* Without reading anything: nobody changes the row of a lock that is held but its holders. While it
 * is not known whether rows were written there is no way around reading them: that takes an answer,
 * over another connection. */
static bool sql_release_nowait(struct store *base, const struct lock_request *request)
{
    struct sql_store *store = of(base);
    struct moment until = moment_plus(moment_now(), LAST_CALL_NS);
    struct sql_text swap = text_of(store), leave = text_of(store);
    bool sent = true;

    loop_disarm(store->loop, &store->poll);
    if (store->asleep) {
        store->done = NULL;
        get_up(store);
        return false;
    }
    if (store->done && (store->unheard || store->heard == hear_swapped)) {
        store->done = NULL;
        store->abandoned = true;
        sql_driver_give_up(store->driver);
        return false;
    }
    store->done = NULL;
    if (knows(store, request)) {
        for (size_t i = 0; i < store->read.count; i++) {
            struct sql_place *place = &store->read.places[i];
            give_back(store, place, sql_row_find(&place->row, request->owner));
        }
        sent = sql_swap(&swap, &store->read, request->owner, MIRROR_ANY) &&
               sql_driver_tell(store->driver, swap.bytes, until);
    }
    if (sent && store->read.count > 0) {
        add_leave(&leave, store);
        sent = sql_driver_tell(store->driver, leave.bytes, until);
    }
    sql_text_end(&swap);
    sql_text_end(&leave);
    return sent && store->read.count > 0;
}

/* -- taking away, looking, preparing ----------------------------------------------------------- */

static void hear_forced(struct sql_store *store)
{
    store->answer.verdict = VERDICT_GRANTED;
    store->purge = store->base.requests.force.purge;
    leave_queues(store);
}

static void decide_force(struct sql_store *store)
{
    const struct force_request *request = &store->base.requests.force;
    struct sql_place *place = store->read.places;

    sql_row_clean(&place->row, store->read.now);
    if (place->row.latch) {
        refuse_stranger(store, place, CAUSE_CHANGED);
        finish(store);
        return;
    }
    for (size_t i = 0; i < request->owner_count; i++) {
        struct sql_holder *holder = sql_row_find(&place->row, request->owners[i]);
        if (!holder) {
            refuse_stranger(store, place, CAUSE_CHANGED);
            finish(store);
            return;
        }
    }
    for (size_t i = 0; i < request->owner_count; i++) {
        struct sql_holder *holder = sql_row_find(&place->row, request->owners[i]);
        if (holder)
            sql_row_remove(&place->row, holder);
    }
    swap_rows(store, MIRROR_ANY, hear_forced);
}

static void hear_theirs_ended(struct sql_store *store)
{
    store->answer.verdict = VERDICT_GRANTED;
    finish(store);
}

static void refuse_theirs(struct sql_store *store)
{
    const struct sql_place *place = store->read.places;
    struct answer *answer = &store->answer;

    answer->verdict = VERDICT_REFUSED;
    answer->cause = CAUSE_HELD;
    tell_mirror(store, place, mirror_of(store, 0), true);
    snprintf(answer->holder.owner, sizeof answer->holder.owner, "%s", place->theirs.by);
    finish(store);
}

/* Another program's lock alone: who has it is known by the name that the table has. */
static void decide_theirs(struct sql_store *store)
{
    const struct force_request *request = &store->base.requests.force;
    const struct sql_place *place = store->read.places;
    const struct sql_mirror *own = &place->row.mirror;
    const char *name = mirror_of(store, 0);
    bool ours = own->family && strcmp(own->name, name) == 0 && sql_mirror_is_ours(place, own);
    struct sql_text text = text_of(store);

    if (place->theirs.left == 0 || ours) {
        store->answer.verdict = request->owner_count ? VERDICT_REFUSED : VERDICT_GRANTED;
        store->answer.cause = request->owner_count ? CAUSE_NOT_HOLDER : CAUSE_NONE;
        finish(store);
    } else if (!request->owner_count || strcmp(request->owners[0], place->theirs.by) != 0) {
        refuse_theirs(store);
    } else {
        sql_mirror_end(&text, name, place->theirs.by);
        store->swapped = hear_theirs_ended;
        ask(store, &text, true, hear_swapped);
    }
}

static void sql_force(struct store *base, const struct force_request *request, struct moment until,
                      store_done *done, void *arg)
{
    begin(of(base), request->mirror ? decide_theirs : decide_force, &request->key, 1, until, done,
          arg);
    of(base)->forces = true;
    get_up(of(base));
    start(of(base));
}

static void hear_survey(struct sql_store *store, const struct sql_reply *reply)
{
    if (sql_survey_report(&store->base.requests.survey, store->prefix, reply))
        store->answer.verdict = VERDICT_GRANTED;
    else
        answer_fail(&store->answer, CAUSE_UNFIT, "the database's tables hold other data");
    finish(store);
}

static void ask_survey(struct sql_store *store)
{
    struct sql_text text = text_of(store);

    sql_survey_query(&text, &store->base.requests.survey, store->prefix);
    ask(store, &text, false, hear_survey);
}

static void sql_survey(struct store *base, const struct survey_request *request,
                       struct moment until, store_done *done, void *arg)
{
    (void)request;
    begin(of(base), ask_survey, NULL, 0, until, done, arg);
    of(base)->again = ask_survey;
    get_up(of(base));
    ask_survey(of(base));
}

static void ask_schema(struct sql_store *store);

static void hear_schema(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    store->answer.verdict = VERDICT_GRANTED;
    if (store->dialect->schema[++store->statement])
        ask_schema(store);
    else
        finish(store);
}

static void ask_schema(struct sql_store *store)
{
    struct sql_text text = text_of(store);

    sql_add(&text, "%s", store->dialect->schema[store->statement]);
    ask(store, &text, true, hear_schema);
}

/* Makes the tables; those that are there stay as they are. */
static void sql_mark(struct store *base, bool force, struct moment until, store_done *done,
                     void *arg)
{
    struct sql_store *store = of(base);

    (void)force;
    begin(store, ask_schema, NULL, 0, until, done, arg);
    store->again = ask_schema;
    store->statement = 0;
    get_up(store);
    ask_schema(store);
}

/* -- latches ----------------------------------------------------------------------------------- */

static const struct latch_request *latch_of(const struct sql_store *store)
{
    return &store->base.requests.latch;
}

static const char *latch_channel(const struct sql_store *store, char channel[SQL_LATCH_CHANNEL])
{
    return sql_latch_channel(store->address.urls->table, store->read.places->name, channel);
}

static void add_latch_call(struct sql_text *text, const struct sql_store *store)
{
    char channel[SQL_LATCH_CHANNEL];

    if (store->dialect->notifies)
        sql_add(text, "; SELECT pg_notify('%s', '')", latch_channel(store, channel));
}

static void look_later(struct sql_store *store)
{
    struct moment now = loop_now(store->loop);

    if (!latch_of(store)->listen || store->dialect->notifies)
        return;
    if (store->waiting_since.ns == 0)
        store->waiting_since = now;
    int64_t ns = (now.ns - store->waiting_since.ns) / 10;
    ns = ns < POLL_NS ? POLL_NS : ns < LATCH_POLL_NS ? ns : LATCH_POLL_NS;
    loop_arm(store->loop, &store->poll, moment_plus(now, jitter_spread(ns, ns / 4)));
}

/* Deleted by this very operation, whose first attempt was not answered. */
static bool is_deleted(const struct sql_store *store)
{
    return latch_of(store)->verb == LATCH_DELETE && store->unheard &&
           store->answer.cause == CAUSE_ABSENT;
}

static void decide_latch(struct sql_store *store)
{
    struct sql_place *place = store->read.places;
    bool waited = place->first[0].owner[0] != '\0';
    enum sql_latch_change change =
        sql_row_latch(&place->row, latch_of(store), store->read.now, waited, &store->answer);

    if (change != SQL_LATCH_SAME) {
        store->calls = change == SQL_LATCH_CALLS;
        swap_rows(store, MIRROR_ANY, finish);
        return;
    }
    if (latch_of(store)->verb == LATCH_LOOK && store->called && ++store->attempts < ATTEMPTS_MAX) {
        start(store);
        return;
    }
    if (is_deleted(store))
        store->answer.verdict = VERDICT_GRANTED;
    look_later(store);
    finish(store);
}

static void start_latch(struct sql_store *store);

static void hear_latch_listening(struct sql_store *store, const struct sql_reply *reply)
{
    char channel[SQL_LATCH_CHANNEL];

    (void)reply;
    note_listening(store, latch_channel(store, channel));
    start(store);
}

/* Whoever listens does so before the latch is read. */
static void start_latch(struct sql_store *store)
{
    char channel[SQL_LATCH_CHANNEL];
    struct sql_text text = text_of(store);

    latch_channel(store, channel);
    if (!latch_of(store)->listen || !store->dialect->notifies || is_listening(store, channel)) {
        start(store);
        return;
    }
    sql_add(&text, "UNLISTEN *; LISTEN \"%s\"", channel);
    ask(store, &text, false, hear_latch_listening);
}

static void sql_latch(struct store *base, const struct latch_request *request, struct moment until,
                      store_done *done, void *arg)
{
    struct sql_store *store = of(base);

    begin(store, decide_latch, &request->key, 1, until, done, arg);
    store->again = start_latch;
    sql_reading_queues(&store->read, NOBODY);
    start_latch(store);
}

/* -- the store --------------------------------------------------------------------------------- */

/* While something is under way its end would be missed: then it looks once more itself. */
static void called(void *arg)
{
    struct sql_store *store = arg;

    if (store->done)
        store->called = true;
    else
        store_poke(&store->base);
}

static void sql_close(struct store *base)
{
    struct sql_store *store = of(base);

    loop_disarm(store->loop, &store->poll);
    sql_driver_free(store->driver);
    sql_reading_free(&store->read);
    free(store->prefix);
    free(store);
}

struct store *sql_store_open(struct loop *loop, const struct store_address *address,
                             const struct sql_dialect *dialect, char *fault, size_t size)
{
    static const struct store_ops ops = {.close = sql_close,
                                         .acquire = sql_acquire,
                                         .renew = sql_renew,
                                         .release = sql_release,
                                         .release_nowait = sql_release_nowait,
                                         .force = sql_force,
                                         .survey = sql_survey,
                                         .latch = sql_latch,
                                         .mark = sql_mark};

    if (address->urls->tls &&
        (address->tls.server_name || (address->tls.ca.path && !address->tls.ca.text))) {
        snprintf(fault, size,
                 "the drivers of databases take neither another server's name nor a "
                 "directory of certificates");
        return NULL;
    }
    struct sql_store *store = mem_zeroed(sizeof *store);
    store->base.ops = &ops;
    store->loop = loop;
    store->address = *address;
    store->dialect = dialect;
    store->prefix = address->prefix ? mem_strdup(address->prefix) : NULL;
    store->poll = (struct loop_timer){.fire = poll_due, .owner = store};
    store->driver = sql_driver_new(loop, address, dialect->program, called, store);
    return &store->base;
}
