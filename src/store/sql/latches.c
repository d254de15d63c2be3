/* A latch is read, changed and written back; who waits for it listens, or looks again. */
#include "store/sql/latches.h"

#include <string.h>

#include "base/jitter.h"
#include "store/sql/latch.h"

/* Where nobody is called, who waits for a latch looks again after a tenth of the time that it has
 * waited: not sooner than after SQL_POLL_NS, not later than after this. */
#define LATCH_POLL_NS (1000 * NS_PER_MS)

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
    ns = ns < SQL_POLL_NS ? SQL_POLL_NS : ns < LATCH_POLL_NS ? ns : LATCH_POLL_NS;
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
        store->add_call = change == SQL_LATCH_CALLS ? add_latch_call : NULL;
        sql_swap_rows(store, MIRROR_ANY, sql_finish);
        return;
    }
    if (latch_of(store)->verb == LATCH_LOOK && store->called &&
        ++store->attempts < SQL_ATTEMPTS_MAX) {
        sql_start(store);
        return;
    }
    if (is_deleted(store))
        store->answer.verdict = VERDICT_GRANTED;
    look_later(store);
    sql_finish(store);
}

static void start_latch(struct sql_store *store);

static void hear_latch_listening(struct sql_store *store, const struct sql_reply *reply)
{
    char channel[SQL_LATCH_CHANNEL];

    (void)reply;
    sql_note_listening(store, latch_channel(store, channel));
    sql_start(store);
}

/* Whoever listens does so before the latch is read. */
static void start_latch(struct sql_store *store)
{
    char channel[SQL_LATCH_CHANNEL];
    struct sql_text text = sql_text_of(store);

    latch_channel(store, channel);
    if (!latch_of(store)->listen || !store->dialect->notifies || sql_is_listening(store, channel)) {
        sql_start(store);
        return;
    }
    sql_add(&text, "UNLISTEN *; LISTEN \"%s\"", channel);
    sql_ask(store, &text, false, hear_latch_listening);
}

void sql_latch(struct store *base, const struct latch_request *request, struct moment until,
               store_done *done, void *arg)
{
    struct sql_store *store = sql_store_of(base);

    sql_begin(store, SQL_LATCH, decide_latch, &request->key, 1, until, done, arg);
    store->again = start_latch;
    sql_reading_queues(&store->read, SQL_NOBODY);
    start_latch(store);
}
