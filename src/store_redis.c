/* One Redis server as a store. */
#include "store_redis.h"
#include "loop.h"
#include "mem.h"
#include "redis_answer.h"
#include "redis_call.h"
#include "redis_error.h"
#include "redis_grace.h"
#include "redis_latch.h"
#include "redis_link.h"
#include "redis_replicas.h"
#include "redis_request.h"
#include "redis_survey.h"
#include "scripts.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* How often to try where the server grants us no channel to be woken by. */
#define POLL_NS (500 * NS_PER_MS)
/* How long a request for a lock or about a latch may go unanswered by a server that has just greeted us: asking again is
 * harmless, and finds out what became of the first. */
#define REQUEST_NS (2 * NS_PER_SEC)
/* How long a release waits for the replicas. They get it anyway; what they miss ends with the lease. */
#define PARTING_NS (200 * NS_PER_MS)

struct redis_store {
    struct store base;
    struct loop *loop;
    struct redis_link *link;
    char *prefix;
    struct redis_terms terms;
    struct loop_timer poll;
    bool no_channel; /* the server forbids SUBSCRIBE */
    bool fresh;      /* the server did not know one of the scripts */
    char *places;    /* ours in the queues, as last told; NULL: none */
    char *places_at; /* the first of those keys */
    struct redis_replicas replicas;
    bool in_cluster;

    /* The operation under way. */
    store_done *done;
    void *done_arg;
    struct moment until;
    struct redis_call call;
    bool listen;
    bool deaf;        /* this time without a channel */
    bool asking;      /* of a Cluster's node that is about to get the slot */
    bool transaction; /* the batch under way is one: nothing in it can wait for replicas */
    bool granted;     /* by the server; the replicas are yet to be heard */
    bool in_time;     /* not to be done after "until" */
    struct redis_survey *survey;
    void (*each_id)(void *arg, const char *id); /* of a latch; NULL */
    void *each_id_arg;
};

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

static void set_places(struct redis_store *store, const char *places)
{
    free(store->places);
    free(store->places_at);
    store->places = places ? mem_strdup(places) : NULL;
    store->places_at = places ? mem_strdup(store->call.keys[0]) : NULL;
}

static bool has_places(const struct redis_store *store)
{
    return store->places && strcmp(store->places_at, store->call.keys[0]) == 0;
}

static void finish(struct redis_store *store, const struct answer *answer)
{
    struct answer told = *answer;

    told.maybe_done |= told.verdict == VERDICT_UNKNOWN && store->granted;
    drop_operation(store);
    store->base.sent = false;
    store->done(store->done_arg, &told);
}

static void add_plain(struct redis_store *store, const char *first, const char *second)
{
    const char *argv[] = {first, second};

    redis_link_add(store->link, second ? 2 : 1, argv, NULL);
}

/* A try and the subscription that must not miss a poke, with nothing in between. */
static void send_listening(struct redis_store *store)
{
    const char *owner = store->call.argv[0];

    add_plain(store, "MULTI", NULL);
    redis_call_add(&store->call, store->link);
    for (size_t i = 0; i < store->call.key_count; i++) {
        char *channel = mem_zeroed(strlen(store->call.keys[i]) + strlen(owner) + 2);
        sprintf(channel, "%s:%s", store->call.keys[i], owner);
        /* One a command: within EXEC, each command has one reply. */
        add_plain(store, "SUBSCRIBE", channel);
        free(channel);
    }
    add_plain(store, "EXEC", NULL);
    redis_link_send(store->link, store->asking + 3 + store->call.key_count, store->call.key_count,
                    store->until);
}

/* Locks have to be on the replicas, where that is asked for; latches have not. */
static bool is_replicated(const struct redis_store *store)
{
    return store->replicas.rule != REPLICAS_NONE &&
           (store->call.script == &script_acquire || store->call.script == &script_renew ||
            store->call.script == &script_release);
}

/* The call, and behind it, in the same write, what waits for the replicas: half of the time, so that an answer
 * comes before the connection is given up. */
static void send_call(struct redis_store *store, struct moment now)
{
    int64_t ns = moment_until(now, store->until) / 2;
    size_t replies = 1;

    redis_call_add(&store->call, store->link);
    if (store->call.script == &script_release && ns > PARTING_NS)
        ns = PARTING_NS;
    if (is_replicated(store))
        replies += redis_replicas_add(&store->replicas, store->link, ns);
    redis_link_send(store->link, store->asking + replies, 0, store->until);
}

/* Asking again is harmless, and so is worth it soon. */
static bool is_harmless(const struct redis_store *store)
{
    return store->call.script == &script_acquire || store->call.script == &script_latch;
}

/* Nobody waits for it after "until": it must not be done later. */
static void set_not_after(struct redis_store *store, struct moment now)
{
    int64_t clock = redis_link_clock(store->link, now);
    int64_t left = moment_until(now, store->until) / NS_PER_MS;
    char not_after[24];

    snprintf(not_after, sizeof not_after, "%" PRId64, clock ? clock + left : 0);
    redis_call_replace(&store->call, REDIS_ARGUMENT_NOT_AFTER, not_after);
}

static void send_operation(struct redis_store *store)
{
    struct moment now = loop_now(store->loop);

    if (is_harmless(store))
        store->until = moment_min(store->until, moment_plus(now, REQUEST_NS));
    if (store->in_time)
        set_not_after(store, now);
    if (store->call.node_at)
        redis_call_replace(&store->call, store->call.node_at, store->base.node);
    if (store->call.script == &script_acquire)
        redis_call_replace(&store->call, REDIS_ARGUMENT_PLACES,
                           has_places(store) ? store->places : "");
    store->base.sent = true;
    store->transaction = store->listen && !store->no_channel && !store->deaf && !store->granted;
    /* Counts for the next command alone, or for a whole transaction. */
    if (store->asking)
        add_plain(store, "ASKING", NULL);
    if (store->transaction)
        send_listening(store);
    else
        send_call(store, now);
}

/* Starts what was put together. What may be asked again soon greets first: only the question is in a
 * hurry. And what must not be done late needs the server's clock, who waits for replicas their number, a
 * member's node its name. */
static void start(struct redis_store *store, struct moment until, store_done *done, void *arg)
{
    bool early =
        is_harmless(store) || store->in_time || is_replicated(store) || store->call.node_at;

    store->until = until;
    store->done = done;
    store->done_arg = arg;
    loop_disarm(store->loop, &store->poll);
    if (early && !redis_link_is_up(store->link))
        redis_link_greet(store->link, until);
    else
        send_operation(store);
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* The script's own reply within a batch; NULL if the call is to be made again, in another way. */
static const redisReply *script_reply(struct redis_store *store, redisReply *const *replies,
                                      size_t count)
{
    if (!store->transaction)
        return replies[0];
    const redisReply *multi = replies[0], *call = replies[1], *exec = replies[count - 1];
    bool refused = false;
    if (!is_error(exec) && exec->elements == count - 2)
        return exec->element[0];
    if (is_error(multi))
        return multi;
    /* A full server queues nothing for EXEC, but runs the script that needs no memory. */
    store->deaf = is_error(call) && redis_error_class(call->str) == REDIS_ERROR_UNFIT;
    for (size_t i = 2; i < count - 1; i++)
        refused |= is_error(replies[i]);
    store->no_channel |= !is_error(call) && refused;
    if (store->deaf || store->no_channel)
        return NULL;
    return is_error(call) ? call : exec;
}

/* False if what was granted is to be asked for again, for the sake of the replicas: it is the same request. */
static bool is_settled(struct redis_store *store, redisReply *const *replies, struct answer *answer)
{
    if (answer->verdict != VERDICT_GRANTED || store->call.script == &script_release ||
        !is_replicated(store))
        return true;
    if (!store->transaction &&
        redis_replicas_hear(&store->replicas, replies + 1, answer) != REPLICAS_MORE)
        return true;
    store->granted = true;
    return false;
}

static void hear_script(struct redis_store *store, redisReply *const *replies, size_t count)
{
    struct answer answer;
    struct redis_extra extra;
    const redisReply *reply = script_reply(store, replies, count);

    if (reply && is_error(reply) && !store->call.whole &&
        redis_error_class(reply->str) == REDIS_ERROR_NOSCRIPT) {
        store->call.whole = store->fresh = true;
        reply = NULL;
    }
    if (!reply) {
        send_operation(store);
        return;
    }
    if (store->call.script == &script_latch) {
        memset(&extra, 0, sizeof extra);
        redis_latch_answer(reply, store->each_id, store->each_id_arg, &answer, &extra.now_ms);
    } else {
        redis_answer_script(reply, &answer, &extra);
    }
    if (extra.now_ms)
        redis_link_set_clock(store->link, extra.now_ms);
    if (extra.stale && !moment_reached(store->until, loop_now(store->loop))) {
        send_operation(store);
        return;
    }
    if (store->call.script == &script_acquire && answer.verdict != VERDICT_UNKNOWN)
        set_places(store, extra.places);
    if (!is_settled(store, replies, &answer)) {
        send_operation(store);
        return;
    }
    if (store->listen && (store->no_channel || store->deaf))
        loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), POLL_NS));
    finish(store, &answer);
}

static void hear_survey(struct redis_store *store, redisReply *const *replies, size_t count)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};

    if (count > 0 && !redis_survey_hear(store->survey, replies, count, &answer)) {
        finish(store, &answer);
        return;
    }
    answer = (struct answer){.verdict = VERDICT_GRANTED};
    if (!redis_survey_ask(store->survey, store->until))
        finish(store, &answer);
}

/* On a new connection. An acquisition that cannot count is not made; but a Cluster's node first says whether it is the
 * one to make it. */
static void greeted(struct redis_store *store)
{
    struct answer answer;

    store->replicas.known = redis_link_replicas(store->link);
    if (store->call.script == &script_acquire && !store->in_cluster &&
        !redis_replicas_possible(&store->replicas, &answer))
        finish(store, &answer);
    else
        send_operation(store);
}

static void batch_done(void *arg, redisReply *const *replies, size_t count,
                       const struct answer *failure)
{
    struct redis_store *store = arg;

    snprintf(store->base.node, sizeof store->base.node, "%s", redis_link_node(store->link));
    if (failure)
        finish(store, failure);
    else if (store->survey)
        hear_survey(store, replies, count);
    else if (count == 0)
        greeted(store);
    else
        hear_script(store, replies + store->asking, count - store->asking);
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
    set_places(store, NULL);
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
    set_places(store, NULL);
    start(store, until, done, arg);
}

static void redis_farewell(struct store *base, const struct lock_request *request)
{
    static const struct redis_terms plain;
    struct redis_store *store = of(base);
    bool asking = store->asking;

    drop_operation(store);
    redis_request_release(&store->call, &plain, store->prefix, request, true);
    /* Nobody will be there to send the script when the server does not know it. */
    store->call.whole = true;
    if (asking)
        add_plain(store, "ASKING", NULL);
    redis_call_add(&store->call, store->link);
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
