/* One Redis server as a store. */
#include "store_redis.h"
#include "key.h"
#include "loop.h"
#include "mem.h"
#include "redis_answer.h"
#include "redis_grace.h"
#include "redis_latch.h"
#include "redis_link.h"
#include "redis_replicas.h"
#include "redis_survey.h"
#include "scripts.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* How long an owner is barred whose acquisition may still be under way somewhere. */
#define BAR_MS 60000
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
    char *marker; /* a key that tells for how long the server remembers; NULL */
    bool grace;   /* and it is to say whether it may have forgotten locks */
    bool member;  /* of a quorum: how long it has been one */
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
    const struct script *script;
    bool whole_script; /* the server did not know it by its digest */
    bool listen;
    bool deaf;        /* this time without a channel */
    bool asking;      /* of a Cluster's node that is about to get the slot */
    bool transaction; /* the batch under way is one: nothing in it can wait for replicas */
    bool granted;     /* by the server; the replicas are yet to be heard */
    bool in_time;     /* not to be done after "until" */
    char **keys;      /* in the store */
    size_t key_count;
    char **argv; /* the script's arguments */
    size_t argc;
    size_t node_at; /* that which tells a member's node; 0: none does */
    struct redis_survey *survey;
    void (*each_id)(void *arg, const char *id); /* of a latch; NULL */
    void *each_id_arg;
};

/* Arguments that are filled in at the moment of sending; acquire.lua, release.lua and a claim of renew.lua have the first
 * one at the same place. */
enum { ARGUMENT_NOT_AFTER = 3, ARGUMENT_PLACES = 4 };

static struct redis_store *of(struct store *base)
{
    return (struct redis_store *)(void *)base;
}

static void add_argument(struct redis_store *store, const char *text)
{
    store->argv = mem_checked(realloc(store->argv, (store->argc + 1) * sizeof *store->argv));
    store->argv[store->argc++] = mem_strdup(text);
}

static void add_number(struct redis_store *store, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    add_argument(store, text);
}

static void replace_argument(struct redis_store *store, size_t i, const char *text)
{
    free(store->argv[i]);
    store->argv[i] = mem_strdup(text);
}

static void drop_operation(struct redis_store *store)
{
    for (size_t i = 0; i < store->argc; i++)
        free(store->argv[i]);
    for (size_t i = 0; i < store->key_count; i++)
        free(store->keys[i]);
    free(store->argv);
    free(store->keys);
    if (store->survey)
        redis_survey_free(store->survey);
    store->argv = NULL;
    store->argc = store->node_at = 0;
    store->keys = NULL;
    store->key_count = 0;
    store->survey = NULL;
    store->script = NULL;
    store->listen = store->deaf = store->in_time = store->whole_script = store->asking = false;
    store->transaction = store->granted = false;
}

static void set_places(struct redis_store *store, const char *places)
{
    free(store->places);
    free(store->places_at);
    store->places = places ? mem_strdup(places) : NULL;
    store->places_at = places ? mem_strdup(store->keys[0]) : NULL;
}

static bool has_places(const struct redis_store *store)
{
    return store->places && strcmp(store->places_at, store->keys[0]) == 0;
}

static void finish(struct redis_store *store, const struct answer *answer)
{
    struct answer told = *answer;

    told.maybe_done |= told.verdict == VERDICT_UNKNOWN && store->granted;
    drop_operation(store);
    store->base.sent = false;
    store->done(store->done_arg, &told);
}

/* Adds the call of the operation's script to the batch. */
static void add_call(struct redis_store *store)
{
    size_t count = 3 + store->key_count + store->argc;
    const char **argv = mem_zeroed(count * sizeof *argv);
    char key_count[24];

    snprintf(key_count, sizeof key_count, "%zu", store->key_count);
    argv[0] = store->whole_script ? "EVAL" : "EVALSHA";
    argv[1] = store->whole_script ? store->script->text : store->script->sha1;
    argv[2] = key_count;
    memcpy(argv + 3, store->keys, store->key_count * sizeof *argv);
    memcpy(argv + 3 + store->key_count, store->argv, store->argc * sizeof *argv);
    redis_link_add(store->link, (int)count, argv, NULL);
    free(argv);
}

static void add_plain(struct redis_store *store, const char *first, const char *second)
{
    const char *argv[] = {first, second};

    redis_link_add(store->link, second ? 2 : 1, argv, NULL);
}

/* A try and the subscription that must not miss a poke, with nothing in between. */
static void send_listening(struct redis_store *store)
{
    const char *owner = store->argv[0];

    add_plain(store, "MULTI", NULL);
    add_call(store);
    for (size_t i = 0; i < store->key_count; i++) {
        char *channel = mem_zeroed(strlen(store->keys[i]) + strlen(owner) + 2);
        sprintf(channel, "%s:%s", store->keys[i], owner);
        /* One a command: within EXEC, each command has one reply. */
        add_plain(store, "SUBSCRIBE", channel);
        free(channel);
    }
    add_plain(store, "EXEC", NULL);
    redis_link_send(store->link, store->asking + 3 + store->key_count, store->key_count,
                    store->until);
}

/* Locks have to be on the replicas, where that is asked for; latches have not. */
static bool is_replicated(const struct redis_store *store)
{
    return store->replicas.rule != REPLICAS_NONE &&
           (store->script == &script_acquire || store->script == &script_renew ||
            store->script == &script_release);
}

/* The call, and behind it, in the same write, what waits for the replicas: half of the time, so that an answer
 * comes before the connection is given up. */
static void send_call(struct redis_store *store, struct moment now)
{
    int64_t ns = moment_until(now, store->until) / 2;
    size_t replies = 1;

    add_call(store);
    if (store->script == &script_release && ns > PARTING_NS)
        ns = PARTING_NS;
    if (is_replicated(store))
        replies += redis_replicas_add(&store->replicas, store->link, ns);
    redis_link_send(store->link, store->asking + replies, 0, store->until);
}

/* Asking again is harmless, and so is worth it soon. */
static bool is_harmless(const struct redis_store *store)
{
    return store->script == &script_acquire || store->script == &script_latch;
}

/* Nobody waits for it after "until": it must not be done later. */
static void set_not_after(struct redis_store *store, struct moment now)
{
    int64_t clock = redis_link_clock(store->link, now);
    int64_t left = moment_until(now, store->until) / NS_PER_MS;
    char not_after[24];

    snprintf(not_after, sizeof not_after, "%" PRId64, clock ? clock + left : 0);
    replace_argument(store, ARGUMENT_NOT_AFTER, not_after);
}

static void send_operation(struct redis_store *store)
{
    struct moment now = loop_now(store->loop);

    if (is_harmless(store))
        store->until = moment_min(store->until, moment_plus(now, REQUEST_NS));
    if (store->in_time)
        set_not_after(store, now);
    if (store->node_at)
        replace_argument(store, store->node_at, store->base.node);
    if (store->script == &script_acquire)
        replace_argument(store, ARGUMENT_PLACES, has_places(store) ? store->places : "");
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
    bool early = is_harmless(store) || store->in_time || is_replicated(store) || store->node_at;

    store->until = until;
    store->done = done;
    store->done_arg = arg;
    loop_disarm(store->loop, &store->poll);
    if (early && !redis_link_is_up(store->link))
        redis_link_greet(store->link, until);
    else
        send_operation(store);
}

static void begin(struct redis_store *store, const struct script *script, const char *const *keys,
                  size_t count)
{
    store->script = script;
    store->keys = mem_zeroed(count * sizeof *store->keys);
    store->key_count = count;
    for (size_t i = 0; i < count; i++)
        store->keys[i] = key_in_store(store->prefix, keys[i]);
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
    if (answer->verdict != VERDICT_GRANTED || store->script == &script_release ||
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

    if (reply && is_error(reply) && !store->whole_script &&
        redis_error_class(reply->str) == REDIS_ERROR_NOSCRIPT) {
        store->whole_script = store->fresh = true;
        reply = NULL;
    }
    if (!reply) {
        send_operation(store);
        return;
    }
    if (store->script == &script_latch) {
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
    if (store->script == &script_acquire && answer.verdict != VERDICT_UNKNOWN)
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
    if (store->script == &script_acquire && !store->in_cluster &&
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
    free(store->marker);
    free(store);
}

static void add_member(struct redis_store *store)
{
    add_argument(store, "member");
    add_argument(store, store->marker);
    store->node_at = store->argc;
    add_argument(store, "");
}

static void add_fences(struct redis_store *store, const struct lock_request *request)
{
    for (size_t i = 0; request->fences && i < request->key_count; i++)
        add_number(store, (int64_t)request->fences[i]);
}

static void redis_acquire(struct store *base, const struct lock_request *request,
                          struct moment until, store_done *done, void *arg)
{
    const int64_t patience = QUEUE_PATIENCE_NS / NS_PER_MS;
    struct redis_store *store = of(base);

    begin(store, &script_acquire, request->keys, request->key_count);
    store->listen = request->listen;
    store->in_time = true;
    redis_link_mind(store->link, request->lease);
    add_argument(store, request->owner);
    add_number(store, request->lease / NS_PER_MS);
    add_number(store, request->stand ? -patience : request->queue ? patience : 0);
    add_argument(store, "0");
    add_argument(store, "");
    add_argument(store, request->listen ? "1" : "0");
    add_argument(store, redis_grace_mode(request->mode));
    add_number(store, request->mode == LOCK_LIMIT ? request->limit : 0);
    add_argument(store, request->no_nesting ? "0" : "1");
    add_argument(store, request->who);
    if (store->grace) {
        add_argument(store, "grace");
        add_argument(store, store->marker);
    } else if (store->member) {
        add_member(store);
        add_number(store, (int64_t)request->proposal);
        add_fences(store, request);
    }
    start(store, until, done, arg);
}

static void add_text(void *arg, const char *text)
{
    add_argument(arg, text);
}

static void redis_renew(struct store *base, const struct lock_request *request, struct moment until,
                        store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    begin(store, &script_renew, request->keys, request->key_count);
    add_argument(store, request->owner);
    add_number(store, request->lease / NS_PER_MS);
    if (store->grace) {
        redis_grace_renewal(store->marker, request, add_text, store);
        store->in_time = request->grants;
    } else if (store->member) {
        add_member(store);
        add_fences(store, request);
    }
    start(store, until, done, arg);
}

static void redis_release(struct store *base, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    begin(store, &script_release, request->keys, request->key_count);
    /* Perhaps nobody stays to hear that it does not know this one either. */
    store->whole_script = store->fresh;
    add_argument(store, request->owner);
    add_number(store, uncertain ? BAR_MS : 0);
    add_number(store, request->at_least / NS_PER_MS);
    add_argument(store, "0");
    if (store->grace) {
        add_argument(store, store->marker);
        add_number(store, request->lease / NS_PER_MS);
    }
    store->in_time = request->in_time;
    set_places(store, NULL);
    start(store, until, done, arg);
}

static void redis_farewell(struct store *base, const struct lock_request *request)
{
    struct redis_store *store = of(base);
    bool asking = store->asking;

    drop_operation(store);
    begin(store, &script_release, request->keys, request->key_count);
    /* Nobody will be there to send the script when the server does not know it. */
    store->whole_script = true;
    add_argument(store, request->owner);
    add_number(store, BAR_MS);
    add_number(store, request->at_least / NS_PER_MS);
    add_argument(store, "0");
    if (asking)
        add_plain(store, "ASKING", NULL);
    add_call(store);
    redis_link_send_blindly(store->link);
    drop_operation(store);
}

static void redis_force(struct store *base, const struct force_request *request,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    begin(store, &script_force, &request->key, 1);
    add_argument(store, request->purge ? "1" : "0");
    for (size_t i = 0; i < request->owner_count; i++)
        add_argument(store, request->owners[i]);
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

    begin(store, &script_latch, &request->key, 1);
    store->listen = request->listen;
    store->each_id = request->each;
    store->each_id_arg = request->each_arg;
    redis_latch_arguments(request, add_text, store);
    start(store, until, done, arg);
}

static void redis_mark(struct store *base, bool force, struct moment until, store_done *done,
                       void *arg)
{
    struct redis_store *store = of(base);

    begin(store, &script_init, NULL, 0);
    add_argument(store, store->marker);
    add_argument(store, force ? "1" : "0");
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
    store->member = address->member;
    store->grace = address->grace;
    if (address->prefix)
        store->marker = redis_grace_marker(address->prefix, store->member ? "quorum" : "epoch");
    store->replicas = (struct redis_replicas){
        .rule = address->replicas, .number = address->replica_count, .known = -1};
    return &store->base;
}
