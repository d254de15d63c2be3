/* Others' holders are taken out of a row, or out of another program's table. */
#include "store/sql/force.h"

#include <stdio.h>
#include <string.h>

static void hear_forced(struct sql_store *store)
{
    store->answer.verdict = VERDICT_GRANTED;
    store->purge = store->base.requests.force.purge;
    sql_leave_queues(store);
}

static void decide_force(struct sql_store *store)
{
    const struct force_request *request = &store->base.requests.force;
    struct sql_place *place = store->read.places;

    sql_row_clean(&place->row, store->read.now);
    if (place->row.latch) {
        sql_refuse_stranger(store, place, CAUSE_CHANGED);
        sql_finish(store);
        return;
    }
    for (size_t i = 0; i < request->owner_count; i++) {
        struct sql_holder *holder = sql_row_find(&place->row, request->owners[i]);
        if (!holder) {
            sql_refuse_stranger(store, place, CAUSE_CHANGED);
            sql_finish(store);
            return;
        }
    }
    for (size_t i = 0; i < request->owner_count; i++) {
        struct sql_holder *holder = sql_row_find(&place->row, request->owners[i]);
        if (holder)
            sql_row_remove(&place->row, holder);
    }
    sql_swap_rows(store, MIRROR_ANY, hear_forced);
}

static void hear_theirs_ended(struct sql_store *store)
{
    store->answer.verdict = VERDICT_GRANTED;
    sql_finish(store);
}

static void refuse_theirs(struct sql_store *store)
{
    const struct sql_place *place = store->read.places;
    struct answer *answer = &store->answer;

    answer->verdict = VERDICT_REFUSED;
    answer->cause = CAUSE_HELD;
    sql_tell_mirror(store, place, sql_mirror_of(store, 0), true);
    snprintf(answer->holder.owner, sizeof answer->holder.owner, "%s", place->theirs.by);
    sql_finish(store);
}

/* Another program's lock alone: who has it is known by the name that the table has. */
static void decide_theirs(struct sql_store *store)
{
    const struct force_request *request = &store->base.requests.force;
    const struct sql_place *place = store->read.places;
    const struct sql_mirror *own = &place->row.mirror;
    const char *name = sql_mirror_of(store, 0);
    bool ours = own->family && strcmp(own->name, name) == 0 && sql_mirror_is_ours(place, own);
    struct sql_text text = sql_text_of(store);

    if (place->theirs.left == 0 || ours) {
        store->answer.verdict = request->owner_count ? VERDICT_REFUSED : VERDICT_GRANTED;
        store->answer.cause = request->owner_count ? CAUSE_NOT_HOLDER : CAUSE_NONE;
        sql_finish(store);
    } else if (!request->owner_count || strcmp(request->owners[0], place->theirs.by) != 0) {
        refuse_theirs(store);
    } else {
        sql_mirror_end(&text, name, place->theirs.by);
        sql_change(store, &text, hear_theirs_ended);
    }
}

void sql_force(struct store *base, const struct force_request *request, struct moment until,
               store_done *done, void *arg)
{
    struct sql_store *store = sql_store_of(base);

    sql_begin(store, request->mirror ? SQL_FORCE_MIRROR : SQL_FORCE,
              request->mirror ? decide_theirs : decide_force, &request->key, 1, until, done, arg);
    sql_get_up(store);
    sql_start(store);
}
