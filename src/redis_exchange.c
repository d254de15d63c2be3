/* A script called: sent with what the server has to be told at that moment, in a transaction with the subscription
 * where one waits, with the replicas behind it; and again, where the reply says that it was in vain. */
#include "loop.h"
#include "mem.h"
#include "redis_answer.h"
#include "redis_error.h"
#include "redis_latch.h"
#include "redis_store_state.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>

/* How often to try where the server grants us no channel to be woken by. */
#define POLL_NS (500 * NS_PER_MS)
/* How long a request for a lock or about a latch may go unanswered by a server that has just greeted us: asking again is
 * harmless, and finds out what became of the first. */
#define REQUEST_NS (2 * NS_PER_SEC)
/* How long a release waits for the replicas. They get it anyway; what they miss ends with the lease. */
#define PARTING_NS (200 * NS_PER_MS)

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

static void add_plain(struct redis_store *store, const char *first, const char *second)
{
    const char *argv[] = {first, second};

    redis_link_add(store->link, second ? 2 : 1, argv, NULL);
}

void redis_exchange_ask(struct redis_store *store)
{
    /* Counts for the next command alone, or for a whole transaction. */
    if (store->asking)
        add_plain(store, "ASKING", NULL);
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

/* What may be asked again soon: only the question is in a hurry. And what must not be done late needs the server's clock,
 * who waits for replicas their number, a member's node its name. */
bool redis_exchange_greets_first(const struct redis_store *store)
{
    return is_harmless(store) || store->in_time || is_replicated(store) || store->call.node_at;
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

void redis_exchange_send(struct redis_store *store)
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
    redis_exchange_ask(store);
    if (store->transaction)
        send_listening(store);
    else
        send_call(store, now);
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

void redis_exchange_hear(struct redis_store *store, redisReply *const *replies, size_t count)
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
        redis_exchange_send(store);
        return;
    }
    if (store->call.script == &script_latch) {
        memset(&extra, 0, sizeof extra);
        redis_latch_answer(reply, store->each_id, store->each_id_arg, &answer, &extra.now_ms);
    } else {
        redis_answer_script(reply, &answer, &extra);
        if (extra.granted &&
            !redis_answer_belongs(store->call.script, store->call.key_count, &extra))
            redis_error_senseless(&answer);
    }
    if (extra.now_ms)
        redis_link_set_clock(store->link, extra.now_ms);
    if (extra.stale && !moment_reached(store->until, loop_now(store->loop))) {
        redis_exchange_send(store);
        return;
    }
    if (store->call.script == &script_acquire && answer.verdict != VERDICT_UNKNOWN)
        set_places(store, extra.places);
    if (!is_settled(store, replies, &answer)) {
        redis_exchange_send(store);
        return;
    }
    if (store->listen && (store->no_channel || store->deaf))
        loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), POLL_NS));
    redis_store_finish(store, &answer);
}

void redis_exchange_forget_places(struct redis_store *store)
{
    set_places(store, NULL);
}
