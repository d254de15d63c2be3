/* Our holders in the rows get a new lease. */
#include "store/sql/renew.h"

#include "store/sql/acquire.h"

/* A mirror that is not ours any more takes the lock with it, however sound our own row is. */
static bool is_lost(struct sql_store *store, struct sql_place *place)
{
    const struct sql_mirror *mirror = &place->row.mirror;

    if (sql_find_own(store, place) &&
        (!sql_row_mirrors(&place->row, sql_request_of(store)->owner) ||
         sql_mirror_is_ours(place, mirror)))
        return false;
    store->answer.cause = CAUSE_NOT_HOLDER;
    if (sql_find_own(store, place))
        sql_tell_mirror(store, place, mirror->name, sql_mirror_is_others(place, mirror));
    else
        sql_refuse_stranger(store, place, CAUSE_NOT_HOLDER);
    store->answer.verdict = VERDICT_REFUSED;
    store->answer.key = (size_t)(place - store->read.places);
    return true;
}

static void decide_renewal(struct sql_store *store)
{
    for (size_t i = 0; i < store->read.count; i++) {
        if (!is_lost(store, &store->read.places[i]))
            continue;
        sql_finish(store);
        return;
    }
    sql_extend_all(store, MIRROR_OURS);
}

void sql_renew(struct store *base, const struct lock_request *request, struct moment until,
               store_done *done, void *arg)
{
    sql_begin(sql_store_of(base), SQL_RENEW, decide_renewal, request->keys, request->key_count,
              until, done, arg);
    sql_get_up(sql_store_of(base));
    sql_start(sql_store_of(base));
}
