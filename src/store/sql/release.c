/* Our holders in the rows, and our places in the queues, are given back. */
#include "store/sql/release.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/key.h"

/* A release that nobody waits for. */
#define LAST_CALL_NS (2 * NS_PER_SEC)

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
    int64_t at_least = sql_request_of(store)->at_least / NS_PER_MS * US_PER_MS;
    char notes[80];

    if (at_least > 0 && own->since + at_least > store->read.now) {
        print_kept(&sql_request_of(store)->end, notes, sizeof notes);
        sql_row_keep(own, at_least, store->read.now, notes);
    } else {
        sql_row_remove(&place->row, own);
    }
}

static void hear_rung(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    sql_bell_rung(&store->bell, true);
    sql_leave_queues(store);
}

/* Whoever is next is called after the row was written: it then finds it free. */
static void hear_released(struct sql_store *store)
{
    if (!sql_ring(store, true, sql_leave_queues, hear_rung))
        sql_leave_queues(store);
}

/* An uncertain one writes rows that it does not change, too: an acquisition that is still on its
 * way then fits no version. */
static void decide_release(struct sql_store *store)
{
    bool changed = false;
    struct sql_place *missing = NULL;

    for (size_t i = store->read.count; i-- > 0;) {
        struct sql_place *place = &store->read.places[i];
        struct sql_holder *own = sql_find_own(store, place);
        changed |= own != NULL;
        if (own)
            give_back(store, place, own);
        else
            missing = place;
    }
    store->answer.verdict = VERDICT_GRANTED;
    if (missing && !store->unheard)
        sql_refuse_stranger(store, missing, CAUSE_NOT_HOLDER);
    store->rings = true;
    if (changed || store->uncertain)
        sql_swap_rows(store, MIRROR_ANY, hear_released);
    else
        sql_leave_queues(store);
}

void sql_release(struct store *base, const struct lock_request *request, bool uncertain,
                 struct moment until, store_done *done, void *arg)
{
    struct sql_store *store = sql_store_of(base);

    sql_begin(store, SQL_RELEASE, decide_release, request->keys, request->key_count, until, done,
              arg);
    store->uncertain = uncertain || store->abandoned;
    sql_get_up(store);
    sql_start(store);
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

bool sql_release_nowait(struct store *base, const struct lock_request *request)
{
    struct sql_store *store = sql_store_of(base);
    struct moment until = moment_plus(moment_now(), LAST_CALL_NS);
    struct sql_text swap = sql_text_of(store), leave = sql_text_of(store);
    bool sent = true;

    loop_disarm(store->loop, &store->poll);
    if (store->asleep) {
        store->done = NULL;
        sql_get_up(store);
        return false;
    }
    if (store->done && (store->unheard || sql_is_changing(store))) {
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
        sql_add_leave(&leave, store);
        sent = sql_driver_tell(store->driver, leave.bytes, until);
    }
    sql_text_end(&swap);
    sql_text_end(&leave);
    return sent && store->read.count > 0;
}
