/* The store, and the operations that no lock is the subject of: looking at all, and preparing. */
#include "store/sql/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/sql/acquire.h"
#include "store/sql/force.h"
#include "store/sql/latches.h"
#include "store/sql/operation.h"
#include "store/sql/release.h"
#include "store/sql/renew.h"
#include "store/sql/survey.h"

/* -- looking ----------------------------------------------------------------------------------- */

static void hear_survey(struct sql_store *store, const struct sql_reply *reply)
{
    if (sql_survey_report(&store->base.requests.survey, store->prefix, reply))
        store->answer.verdict = VERDICT_GRANTED;
    else
        answer_fail(&store->answer, CAUSE_UNFIT, "the database's tables hold other data");
    sql_finish(store);
}

static void ask_survey(struct sql_store *store)
{
    struct sql_text text = sql_text_of(store);

    sql_survey_query(&text, &store->base.requests.survey, store->prefix);
    sql_ask(store, &text, false, hear_survey);
}

static void sql_survey(struct store *base, const struct survey_request *request,
                       struct moment until, store_done *done, void *arg)
{
    (void)request;
    sql_begin(sql_store_of(base), SQL_SURVEY, ask_survey, NULL, 0, until, done, arg);
    sql_store_of(base)->again = ask_survey;
    sql_get_up(sql_store_of(base));
    ask_survey(sql_store_of(base));
}

/* -- preparing --------------------------------------------------------------------------------- */

static void hear_schema(struct sql_store *store, const struct sql_reply *reply);

/* Each statement once; where there are none left, all is done. */
static void ask_schema(struct sql_store *store)
{
    struct sql_text text = sql_text_of(store);

    if (sql_add_schema(&text, store->base.requests.mark.user, store->statement)) {
        sql_ask(store, &text, true, hear_schema);
        return;
    }
    sql_text_end(&text);
    store->answer.verdict = VERDICT_GRANTED;
    sql_finish(store);
}

static void hear_schema(struct sql_store *store, const struct sql_reply *reply)
{
    (void)reply;
    store->statement++;
    ask_schema(store);
}

/* Makes the tables; those that are there stay as they are. */
static void sql_mark(struct store *base, const struct mark_request *request, struct moment until,
                     store_done *done, void *arg)
{
    struct sql_store *store = sql_store_of(base);

    (void)request;
    sql_begin(store, SQL_MARK, ask_schema, NULL, 0, until, done, arg);
    store->again = ask_schema;
    store->statement = 0;
    sql_get_up(store);
    ask_schema(store);
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
    struct sql_store *store = sql_store_of(base);

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
    store->poll = (struct loop_timer){.fire = sql_poll_due, .owner = store};
    store->driver = sql_driver_new(loop, address, dialect->program, called, store);
    return &store->base;
}
