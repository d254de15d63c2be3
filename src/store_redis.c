/* One Redis server as a store. */
#include "store_redis.h"
#include "mem.h"
#include "redis_grace.h"
#include "redis_link.h"
#include "redis_store_state.h"

#include <stdio.h>

static struct redis_store *of(struct store *base)
{
    return (struct redis_store *)(void *)base;
}

static void drop_operation(struct redis_store *store)
{
    redis_call_drop(&store->call);
    if (store->survey)
        redis_survey_free(store->survey);
    store->survey = NULL;
    store->listen = store->deaf = store->in_time = store->asking = false;
    store->transaction = store->granted = false;
}

void redis_store_finish(struct redis_store *store, const struct answer *answer)
{
    struct answer told = *answer;

    told.maybe_done |= told.verdict == VERDICT_UNKNOWN && store->granted;
    drop_operation(store);
    store->base.sent = false;
    store->done(store->done_arg, &told);
}

/* Starts what was put together. */
static void start(struct redis_store *store, struct moment until, store_done *done, void *arg)
{
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    loop_disarm(store->loop, &store->poll);
    if (redis_exchange_greets_first(store) && !redis_link_is_up(store->link))
        redis_link_greet(store->link, until);
    else
        redis_exchange_send(store);
}

static void hear_survey(struct redis_store *store, struct redisReply *const *replies, size_t count)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};

    if (count > 0 && !redis_survey_hear(store->survey, replies, count, &answer)) {
        redis_store_finish(store, &answer);
        return;
    }
    answer = (struct answer){.verdict = VERDICT_GRANTED};
    if (!redis_survey_ask(store->survey, store->until))
        redis_store_finish(store, &answer);
}

/* On a new connection. An acquisition that cannot count is not made; but a Cluster's node first says whether it is the
 * one to make it. */
static void greeted(struct redis_store *store)
{
    struct answer answer;

    store->replicas.known = redis_link_replicas(store->link);
    if (store->call.script == &script_acquire && !store->in_cluster &&
        !redis_replicas_possible(&store->replicas, &answer))
        redis_store_finish(store, &answer);
    else
        redis_exchange_send(store);
}

static void batch_done(void *arg, struct redisReply *const *replies, size_t count,
                       const struct answer *failure)
{
    struct redis_store *store = arg;

    snprintf(store->base.node, sizeof store->base.node, "%s", redis_link_node(store->link));
    if (failure)
        redis_store_finish(store, failure);
    else if (store->survey)
        hear_survey(store, replies, count);
    else if (count == 0)
        greeted(store);
    else
        redis_exchange_hear(store, replies + store->asking, count - store->asking);
}

static void poked(void *arg)
{
    struct redis_store *store = arg;

    if (store->base.poked)
        store->base.poked(store->base.poked_arg);
}

static void poll_due(struct loop_timer *timer)
{
    poked(timer->owner);
}

static void redis_close(struct store *base)
{
    struct redis_store *store = of(base);

    loop_disarm(store->loop, &store->poll);
    redis_link_free(store->link);
    drop_operation(store);
    redis_exchange_forget_places(store);
    free(store->prefix);
    free(store->terms.marker);
    free(store);
}

static void redis_acquire(struct store *base, const struct lock_request *request,
                          struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    store->listen = request->listen;
    store->in_time = true;
    redis_link_mind(store->link, request->lease);
    redis_request_acquire(&store->call, &store->terms, store->prefix, request);
    start(store, until, done, arg);
}

static void redis_renew(struct store *base, const struct lock_request *request, struct moment until,
                        store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    redis_request_renew(&store->call, &store->terms, store->prefix, request);
    store->in_time = store->terms.grace && request->grants;
    start(store, until, done, arg);
}

static void redis_release(struct store *base, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    redis_request_release(&store->call, &store->terms, store->prefix, request, uncertain);
    /* Perhaps nobody stays to hear that it does not know this one either. */
    store->call.whole = store->fresh;
    store->in_time = request->in_time;
    redis_exchange_forget_places(store);
    start(store, until, done, arg);
}

static void redis_farewell(struct store *base, const struct lock_request *request)
{
    static const struct redis_terms plain;
    struct redis_store *store = of(base);
    bool asking = store->asking;

    drop_operation(store);
    store->asking = asking;
    redis_request_release(&store->call, &plain, store->prefix, request, true);
    /* A server that has yet to answer what came before notices then that we have gone, and does no more than it has read:
     * 16 KB. Whether it knows the script by its digest nobody will be there to hear, so the script itself follows. */
    for (int whole = 0; whole <= 1; whole++) {
        store->call.whole = whole;
        redis_exchange_ask(store);
        redis_call_add(&store->call, store->link);
    }
    redis_link_send_blindly(store->link);
    drop_operation(store);
}

static void redis_force(struct store *base, const struct force_request *request,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    redis_request_force(&store->call, store->prefix, request);
    start(store, until, done, arg);
}

static void start_survey(struct redis_store *store, struct redis_survey *survey,
                         struct moment until, store_done *done, void *arg)
{
    store->survey = survey;
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    redis_link_greet(store->link, until);
}

static void redis_survey(struct store *base, const struct survey_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);
    struct redis_survey *survey = redis_survey_new(store->link, store->prefix, request);

    redis_survey_at_node(survey, store->asking, NULL, NULL);
    start_survey(store, survey, until, done, arg);
}

static void redis_latch(struct store *base, const struct latch_request *request,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    store->listen = request->listen;
    store->each_id = request->each;
    store->each_id_arg = request->each_arg;
    redis_request_latch(&store->call, store->prefix, request);
    start(store, until, done, arg);
}

static void redis_mark(struct store *base, bool force, struct moment until, store_done *done,
                       void *arg)
{
    struct redis_store *store = of(base);

    redis_request_mark(&store->call, &store->terms, force);
    start(store, until, done, arg);
}

bool store_redis_is_up(const struct store *node)
{
    return redis_link_is_up(((const struct redis_store *)(const void *)node)->link);
}

void store_redis_asking(struct store *node)
{
    of(node)->asking = true;
}

void store_redis_survey(struct store *node, const struct survey_request *request,
                        void (*elsewhere)(void *arg, const char *key), void *elsewhere_arg,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(node);
    struct redis_survey *survey = redis_survey_new(store->link, store->prefix, request);

    redis_survey_at_node(survey, false, elsewhere, elsewhere_arg);
    start_survey(store, survey, until, done, arg);
}

struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size)
{
    static const struct store_ops ops = {redis_close,   redis_acquire,  redis_renew,
                                         redis_release, redis_farewell, redis_force,
                                         redis_survey,  redis_latch,    redis_mark};
    static const struct redis_link_events events = {batch_done, poked};
    struct redis_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->poll = (struct loop_timer){.fire = poll_due, .owner = store};
    store->link = redis_link_new(loop, address, &events, store, fault, size);
    if (!store->link) {
        free(store);
        return NULL;
    }
    store->prefix = address->prefix ? mem_strdup(address->prefix) : NULL;
    store->in_cluster = strcmp(address->urls->scheme, "cluster") == 0;
    store->terms = (struct redis_terms){.member = address->member, .grace = address->grace};
    if (address->prefix)
        store->terms.marker =
            redis_grace_marker(address->prefix, address->member ? "quorum" : "epoch");
    store->replicas = (struct redis_replicas){
        .rule = address->replicas, .number = address->replica_count, .known = -1};
    return &store->base;
}
