/* What the operations on a database share. */
#include "store/sql/operation.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/sql/failure.h"
#include "store/sql/latch.h"
#include "store/sql/queue.h"

static void hear_all(struct sql_store *store, const struct sql_reply *reply);

/* Who holds, or would hold; NULL where nobody in particular does. */
static const char *owner_of(const struct sql_store *store)
{
    bool forces = store->verb == SQL_FORCE || store->verb == SQL_FORCE_MIRROR;

    return forces ? NULL : sql_request_of(store)->owner;
}

/* Whose places in the queues are told from all others. */
static const char *reader_of(const struct sql_store *store)
{
    return store->verb == SQL_LATCH ? SQL_NOBODY : sql_request_of(store)->owner;
}

/* -- the course of an operation ---------------------------------------------------------------- */

void sql_finish(struct sql_store *store)
{
    store_done *done = store->done;

    store->done = NULL;
    done(store->arg, &store->answer);
}

void sql_fail(struct sql_store *store, enum cause cause, const char *text)
{
    answer_fail(&store->answer, cause, "%s", text);
    store->answer.maybe_done = store->unheard;
    sql_finish(store);
}

static void statement_failed(struct sql_store *store, const struct sql_reply *reply)
{
    store->unheard |= store->writes && reply->maybe_done;
    store->abandoned |= store->unheard;
    bool deaf = store->heard == hear_all && sql_bell_fails(&store->bell, &store->read, reply);
    if (deaf || (reply->error == WIRE_CONFLICT && ++store->attempts < SQL_ATTEMPTS_MAX)) {
        store->again(store);
    } else if (store->optional) {
        sql_finish(store);
    } else if (reply->aged && !store->retried) {
        store->retried = true;
        store->again(store);
    } else {
        sql_answer_failure(&store->answer, &store->address, reply);
        store->answer.maybe_done = store->unheard;
        sql_finish(store);
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

void sql_ask(struct sql_store *store, struct sql_text *text, bool writes,
             void (*heard)(struct sql_store *, const struct sql_reply *))
{
    store->heard = heard;
    store->writes = writes;
    sql_driver_ask(store->driver, text->bytes, store->until, replied, store);
    sql_text_end(text);
}

void sql_get_up(struct sql_store *store)
{
    if (store->asleep)
        sql_driver_give_up(store->driver);
    store->asleep = false;
}

void sql_begin(struct sql_store *store, enum sql_verb verb, void (*decide)(struct sql_store *),
               const char *const *keys, size_t count, struct moment until, store_done *done,
               void *arg)
{
    loop_disarm(store->loop, &store->poll);
    store->tired = false;
    sql_reading_begin(&store->read, store->prefix, keys, count);
    store->verb = verb;
    store->decide = decide;
    store->done = done;
    store->arg = arg;
    store->until = until;
    store->again = sql_start;
    store->optional = store->uncertain = store->joined = store->fresh = store->called = false;
    store->sure = store->unheard = store->retried = store->purge = store->rings = false;
    store->add_call = NULL;
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
    sql_finish(store);
}

static void hear_mirrors(struct sql_store *store, const struct sql_reply *reply)
{
    if (sql_mirror_take(store->read.places, store->read.count, reply))
        store->decide(store);
    else
        sql_fail(store, CAUSE_UNFIT, "the table shedlock holds other data");
}

const char *sql_mirror_of(const struct sql_store *store, size_t i)
{
    const struct sql_row *row = &store->read.places[i].row;
    const char *wanted = sql_request_of(store)->mirror;

    if (store->verb == SQL_FORCE_MIRROR)
        return strchr(store->base.requests.force.mirror, ':') + 1;
    if (store->verb == SQL_ACQUIRE)
        return wanted ? strchr(wanted, ':') + 1 : NULL;
    if (store->verb == SQL_RENEW && sql_row_mirrors(row, sql_request_of(store)->owner))
        return row->mirror.name;
    return NULL;
}

/* False if it depends on none. */
static bool ask_mirrors(struct sql_store *store)
{
    const char *names[LOCK_KEYS_MAX] = {NULL};
    struct sql_text text = sql_text_of(store);
    bool some = false;

    for (size_t i = 0; i < store->read.count; i++) {
        names[i] = sql_mirror_of(store, i);
        some |= names[i] != NULL;
    }
    if (!some)
        return false;
    sql_mirror_query(&text, names, store->read.count);
    sql_ask(store, &text, false, hear_mirrors);
    return true;
}

static void hear_all(struct sql_store *store, const struct sql_reply *reply)
{
    store->read_at = reply->sent;
    store->answer = (struct answer){0};
    store->sure = sql_reading_take(&store->read, reply);
    if (store->dialect->bells)
        sql_bell_note(&store->bell, &store->read, sql_request_of(store)->owner,
                      sql_driver_connection(store->driver));
    if (!store->sure)
        refuse_damaged(store);
    else if (!ask_mirrors(store))
        store->decide(store);
}

void sql_start(struct sql_store *store)
{
    const struct lock_request *request = sql_request_of(store);
    struct sql_text text = sql_text_of(store);

    if (store->dialect->bells && (store->verb == SQL_ACQUIRE || store->verb == SQL_RENEW))
        sql_bell_prepare(&store->bell, &store->read, request->owner,
                         request->listen && store->verb == SQL_ACQUIRE &&
                             request->mode != LOCK_EXCLUSIVE,
                         sql_driver_connection(store->driver));
    sql_reading_query(&store->read, reader_of(store), &text);
    store->called = false;
    sql_ask(store, &text, false, hear_all);
}

/* -- writing ----------------------------------------------------------------------------------- */

void sql_begin_anew(struct sql_store *store)
{
    if (++store->attempts < SQL_ATTEMPTS_MAX)
        store->again(store);
    else
        sql_fail(store, CAUSE_NOT_READY, "others change its rows all the time");
}

static void hear_swapped(struct sql_store *store, const struct sql_reply *reply)
{
    store->sure = reply->rows != 1 || strcmp(reply->values[0], "0") != 0;
    if (store->sure)
        store->swapped(store);
    else
        sql_begin_anew(store);
}

void sql_change(struct sql_store *store, struct sql_text *text, void (*swapped)(struct sql_store *))
{
    store->swapped = swapped;
    sql_ask(store, text, true, hear_swapped);
}

bool sql_is_changing(const struct sql_store *store)
{
    return store->heard == hear_swapped;
}

static void swap_all(struct sql_store *store, enum sql_mirror_need need,
                     void (*swapped)(struct sql_store *))
{
    struct sql_text text = sql_text_of(store);

    if (!sql_swap(&text, &store->read, owner_of(store), need)) {
        sql_text_end(&text);
        sql_fail(store, CAUSE_UNFIT,
                 store->verb == SQL_LATCH
                     ? "the latch has counted more than a row of a database can hold"
                     : "it has too many holders for a row of a database");
        return;
    }
    if (store->add_call)
        store->add_call(&text, store);
    store->sure = false;
    for (size_t i = 0; i < store->read.count; i++) {
        struct sql_row *row = &store->read.places[i].row;
        row->version++;
        if (sql_row_mirrored_until(row) == 0)
            sql_row_forget_mirror(row);
    }
    sql_change(store, &text, swapped);
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
    sql_begin_anew(store);
}

/* Free rows say nothing: it does not matter who makes them, and when. False if all are there. */
static bool make_rows(struct sql_store *store, enum sql_mirror_need need)
{
    struct sql_text text = sql_text_of(store);
    const struct sql_place *place = store->read.places;
    bool makes = has_mirror(store) && sql_swap_make(&text, &store->read);

    if (!makes && need == MIRROR_FREE && !place->theirs.by) {
        sql_mirror_make(&text, place->row.mirror.name);
        makes = true;
    }
    if (makes)
        sql_ask(store, &text, false, hear_made);
    return makes;
}

void sql_swap_rows(struct sql_store *store, enum sql_mirror_need need,
                   void (*swapped)(struct sql_store *))
{
    if (moment_reached(store->until, moment_now()))
        sql_fail(store, CAUSE_UNREACHABLE, "the request took too long");
    else if (!make_rows(store, need))
        swap_all(store, need, swapped);
}

/* -- leaving the queues ------------------------------------------------------------------------ */

void sql_add_leave(struct sql_text *text, const struct sql_store *store)
{
    const char *owner = sql_request_of(store)->owner;

    sql_queue_leave(text, &store->read, store->purge ? NULL : owner ? owner : "");
    if (store->dialect->notifies)
        sql_queue_call(text, &store->read);
}

static bool has_bell(const struct sql_store *store, enum sql_bell_kind kind)
{
    return sql_bell_has(&store->bell, kind, sql_driver_connection(store->driver));
}

bool sql_ring(struct sql_store *store, bool both, void (*again)(struct sql_store *),
              void (*heard)(struct sql_store *, const struct sql_reply *))
{
    struct sql_text text = sql_text_of(store);

    if (!has_bell(store, SQL_BELL_TURN) && !(both && has_bell(store, SQL_BELL_OWN)))
        return false;
    sql_bell_ring(&store->bell, both, &text);
    store->optional = true;
    store->again = again;
    sql_ask(store, &text, false, heard);
    return true;
}

static void hear_last_ring(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    sql_bell_rung(&store->bell, store->verb != SQL_ACQUIRE);
    sql_finish(store);
}

/* Whoever is woken finds the owner gone. */
static void hear_left(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    if (!store->rings || !sql_ring(store, store->verb != SQL_ACQUIRE, sql_finish, hear_last_ring))
        sql_finish(store);
}

void sql_leave_queues(struct sql_store *store)
{
    struct sql_text text = sql_text_of(store);

    sql_add_leave(&text, store);
    store->optional = true;
    store->again = sql_leave_queues;
    sql_ask(store, &text, false, hear_left);
}

/* -- listening --------------------------------------------------------------------------------- */

void sql_note_listening(struct sql_store *store, const char *listener)
{
    store->listening = sql_driver_connection(store->driver);
    snprintf(store->listener, sizeof store->listener, "%s", listener);
}

bool sql_is_listening(const struct sql_store *store, const char *listener)
{
    return store->listening == sql_driver_connection(store->driver) &&
           strcmp(store->listener, listener) == 0;
}

/* -- holders and refusals ---------------------------------------------------------------------- */

struct sql_holder *sql_find_own(const struct sql_store *store, struct sql_place *place)
{
    struct sql_holder *own = sql_row_find(&place->row, sql_request_of(store)->owner);

    return own && sql_request_of(store)->strict && own->deadline <= store->read.now ? NULL : own;
}

void sql_refuse_stranger(struct sql_store *store, struct sql_place *place, enum cause cause)
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

void sql_tell_mirror(struct sql_store *store, const struct sql_place *place, const char *name,
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
