/* What the files of store_redis.h share: one operation at a time, and what is known from one to the next. */
#ifndef RLOCK_REDIS_STORE_STATE_H
#define RLOCK_REDIS_STORE_STATE_H

#include "loop.h"
#include "redis_call.h"
#include "redis_replicas.h"
#include "redis_request.h"
#include "redis_survey.h"

struct redisReply;

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

/* Completes the operation. */
void redis_store_finish(struct redis_store *store, const struct answer *answer);

/* The calls of an operation's script, as many as it takes (redis_exchange.c). */

/* Whether the server has to be greeted before the time for an answer begins. */
bool redis_exchange_greets_first(const struct redis_store *store);
/* Sends the call, in the way that the server takes it. */
void redis_exchange_send(struct redis_store *store);
/* Takes the replies; sends the call again, or finishes. */
void redis_exchange_hear(struct redis_store *store, struct redisReply *const *replies,
                         size_t count);
/* Adds to the batch that what follows is for a slot which the node is about to get, if so it is. */
void redis_exchange_ask(struct redis_store *store);
void redis_exchange_forget_places(struct redis_store *store);

#endif
