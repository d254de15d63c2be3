/* Start reading at cluster_nodes_read(), and at on_answer(), which decides whether it is known now
 * which node has which slots. */
#include "store/cluster/nodes.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "rules/error.h"
#include "store/redis/session.h"
#include "store/redis/store.h"

/* Between one and the next: so that all can be asked in the time that there is. */
#define PAUSE_LEAST_NS (10 * NS_PER_MS)
#define PAUSE_MOST_NS  (100 * NS_PER_MS)
/* So many are asked at a time; the one that was asked first makes room for another. */
#define ATTEMPTS_MAX 32

/* How a node is reached. */
struct cluster_way {
    struct url url; /* only of this node */
    struct store_address address;
    char host[CLUSTER_HOST_SIZE];
    struct store *store; /* NULL: not opened, or closed again */
    bool used;
};

/* One node that is asked for the map. */
struct attempt {
    struct cluster_nodes *nodes;
    size_t node, rank;             /* in the order of candidates */
    struct redis_session *session; /* NULL: there is no attempt here */
    bool over;                     /* it has answered, or will not */
};

struct cluster_nodes {
    struct loop *loop;
    struct store_address address;
    const struct store_events *events; /* of each node's store */
    void *events_arg;
    struct cluster_map map;

    /* The reading of the map. */
    size_t *candidates, candidate_count, next;
    struct attempt attempts[ATTEMPTS_MAX];
    int64_t pause; /* ns */
    bool busy;
    bool over;             /* no other node is asked */
    struct answer outcome; /* so far; GRANTED: no node has failed yet */
    size_t rank;           /* of whom it is of */
    struct moment until;
    store_done *done;
    void *arg;
    /* When to ask the next node, or to free attempts that are over: not while one
     * of them is calling us. */
    struct loop_timer onward;
};

/* -- the nodes --------------------------------------------------------------------------------- */

/* Returns how the ith node is reached: its URL is the Cluster's, with one host. */
static struct cluster_way *way_to(struct cluster_nodes *nodes, size_t i)
{
    struct cluster_node *node = &nodes->map.nodes[i];

    if (!node->way) {
        struct cluster_way *way = node->way = mem_zeroed(sizeof *way);
        strcpy(way->host, node->host);
        way->url = *nodes->address.urls;
        way->url.hosts[0] = (struct url_host){way->host, node->port};
        way->url.host_count = 1;
        way->address = nodes->address;
        way->address.urls = &way->url;
        way->address.url_count = 1;
    }
    return node->way;
}

/* Closes the node's store, if it is open, and with it the connection. */
static void close_store(struct cluster_way *way)
{
    if (way->store)
        store_close(way->store);
    way->store = NULL;
}

struct cluster_map *cluster_nodes_map(struct cluster_nodes *nodes)
{
    return &nodes->map;
}

struct store *cluster_nodes_use(struct cluster_nodes *nodes, size_t i, char *fault, size_t size)
{
    struct cluster_way *way = way_to(nodes, i);

    if (!way->store) {
        way->store = store_redis_open(nodes->loop, &way->address, fault, size);
        if (way->store)
            store_on_event(way->store, nodes->events, nodes->events_arg);
    }
    return way->store;
}

struct store *cluster_nodes_store(const struct cluster_nodes *nodes, size_t i)
{
    const struct cluster_way *way = nodes->map.nodes[i].way;

    return way ? way->store : NULL;
}

void cluster_nodes_keep(struct cluster_nodes *nodes, size_t i)
{
    way_to(nodes, i)->used = true;
}

/* A reading of the map (busy) knows nodes by their numbers, so none is forgotten meanwhile. */
void cluster_nodes_tidy(struct cluster_nodes *nodes, size_t needed)
{
    for (size_t i = 0; i < nodes->map.node_count; i++) {
        struct cluster_way *way = nodes->map.nodes[i].way;
        bool stale = !nodes->busy && i != needed && cluster_map_is_stale(&nodes->map, i);
        if (way && (stale || !way->used))
            close_store(way);
        if (way)
            way->used = false;
        if (!stale)
            continue;
        free(way);
        cluster_map_forget(&nodes->map, i);
    }
}

/* -- the map: asking one node after the other -------------------------------------------------- */

/* Closes the attempt's connection; not while that is calling us. */
static void end_attempt(struct attempt *attempt)
{
    if (attempt->session)
        redis_session_free(attempt->session);
    attempt->session = NULL;
}

/* Has the timer take the next step (on_turn()) as soon as the loop turns. */
static void continue_soon(struct cluster_nodes *nodes)
{
    loop_arm(nodes->loop, &nodes->onward, loop_now(nodes->loop));
}

/* Notes in nodes->outcome why a node could not tell the map, if that says more than what was noted
 * before: the reason of the first one that was asked does, but one that is full comes before, as it
 * will tell when it takes one more client. */
static void note_failure(struct attempt *attempt, const struct answer *why)
{
    struct cluster_nodes *nodes = attempt->nodes;
    struct answer *outcome = &nodes->outcome;
    /* By now some node was reached. */
    bool reached = why->cause != CAUSE_UNREACHABLE || outcome->cause == CAUSE_NOT_READY;
    bool says_more = why->full == outcome->full ? attempt->rank < nodes->rank : why->full;

    if (outcome->verdict == VERDICT_GRANTED || says_more) {
        *outcome = *why;
        outcome->verdict = VERDICT_UNKNOWN;
        outcome->maybe_done = outcome->any_time = false; /* a map was asked for */
        nodes->rank = attempt->rank;
    }
    if (reached)
        outcome->cause = CAUSE_NOT_READY;
}

/* Notes the failure of one attempt, for a reason of ours. */
static void fail_attempt(struct attempt *attempt, enum cause cause, const char *text)
{
    struct answer why;

    answer_fail(&why, cause, "%s", text);
    note_failure(attempt, &why);
}

/* Takes an error of a node, or of this host. Another attempt would come to the same where the user
 * is denied, the server is not in a Cluster, or this host has no room: all attempts are over.
 * Otherwise this one is. */
static void take_error(struct attempt *attempt, const struct answer *error)
{
    struct cluster_nodes *nodes = attempt->nodes;

    nodes->over = error->cause == CAUSE_DENIED || error->cause == CAUSE_CLUSTER ||
                  error->cause == CAUSE_SYSTEM;
    if (nodes->over)
        nodes->outcome = *error;
    else
        note_failure(attempt, error);
}

/* Takes a node's reply to the question for the map. A good one ends the search, and so does an
 * error that every node would give; after any other failure the next node is asked. */
static void on_answer(void *arg, redisReply *const *replies, size_t count,
                      const struct answer *failure)
{
    struct attempt *attempt = arg;
    struct cluster_nodes *nodes = attempt->nodes;
    struct answer error = {0};

    attempt->over = true;
    continue_soon(nodes);
    if (nodes->over)
        return;
    struct cluster_node *node = &nodes->map.nodes[attempt->node];
    bool reached = count > 0 || failure->cause != CAUSE_UNREACHABLE;
    *(reached ? &node->answered : &node->failed) = loop_now(nodes->loop);
    if (count == 0) {
        take_error(attempt, failure);
    } else if (replies[0]->type == REDIS_REPLY_ERROR) {
        redis_error_answer(replies[0]->str, &error);
        take_error(attempt, &error);
    } else {
        char asked[CLUSTER_HOST_SIZE];
        strcpy(asked, node->host); /* reading may move the nodes */
        nodes->over = cluster_map_read(&nodes->map, replies[0], asked);
        if (nodes->over)
            nodes->outcome = (struct answer){.verdict = VERDICT_GRANTED};
        else
            fail_attempt(attempt, CAUSE_NOT_READY, "a node of the Cluster knows of no slots");
    }
}

/* Returns room for another attempt; if there is none, fails the oldest. */
static struct attempt *make_room(struct cluster_nodes *nodes)
{
    struct attempt *room = &nodes->attempts[0];

    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        struct attempt *attempt = &nodes->attempts[i];
        if (!attempt->session)
            return attempt;
        if (attempt->rank < room->rank)
            room = attempt;
    }
    fail_attempt(room, CAUSE_UNREACHABLE, "no answer in time");
    end_attempt(room);
    return room;
}

/* Asks the next candidate for the map, over a connection of its own. */
static void ask_next(struct cluster_nodes *nodes)
{
    static const struct redis_session_events events = {.done = on_answer};
    struct attempt *attempt = make_room(nodes);
    char fault[256];

    *attempt = (struct attempt){
        .nodes = nodes, .node = nodes->candidates[nodes->next], .rank = nodes->next};
    nodes->next++;
    attempt->session = redis_session_new(nodes->loop, &way_to(nodes, attempt->node)->address,
                                         &events, attempt, fault, sizeof fault);
    if (attempt->session) {
        REDIS_SESSION_ADD(attempt->session, "CLUSTER", "SLOTS");
        redis_session_send(attempt->session, 1, 0, nodes->until);
    } else {
        fail_attempt(attempt, CAUSE_UNREACHABLE, fault);
    }
}

enum attempts { ATTEMPTS_OVER, ALL_ATTEMPTS };

/* Ends all attempts, or those that are over. Returns how many are left. */
static size_t end_attempts(struct cluster_nodes *nodes, enum attempts which)
{
    size_t left = 0;

    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        if (which == ALL_ATTEMPTS || nodes->attempts[i].over)
            end_attempt(&nodes->attempts[i]);
        left += nodes->attempts[i].session != NULL;
    }
    return left;
}

/* The next step of the search for a map: asks one more node, or waits for those that were asked, or
 * ends the search. */
static void on_turn(struct loop_timer *timer)
{
    struct cluster_nodes *nodes = timer->owner;
    struct moment now = loop_now(nodes->loop);
    bool late = moment_reached(nodes->until, now);
    size_t left = end_attempts(nodes, nodes->over ? ALL_ATTEMPTS : ATTEMPTS_OVER);

    if (!nodes->over && !late && nodes->next < nodes->candidate_count) {
        ask_next(nodes);
        loop_arm(nodes->loop, &nodes->onward, moment_plus(now, nodes->pause));
        return;
    }
    if (!nodes->over && left > 0)
        return; /* they answer, or fail at "until" */
    if (!nodes->over && nodes->outcome.verdict == VERDICT_GRANTED)
        answer_fail(&nodes->outcome, CAUSE_NOT_READY,
                    "no node of the Cluster was asked for its slots in time");
    nodes->busy = false;
    nodes->done(nodes->arg, &nodes->outcome);
}

void cluster_nodes_read(struct cluster_nodes *nodes, struct moment until, store_done *done,
                        void *arg)
{
    const struct cluster_map *map = &nodes->map;
    int64_t share;

    cluster_nodes_stop(nodes);
    nodes->busy = true;
    nodes->over = false;
    nodes->outcome = (struct answer){.verdict = VERDICT_GRANTED};
    nodes->until = until;
    nodes->done = done;
    nodes->arg = arg;
    nodes->candidates =
        mem_checked(realloc(nodes->candidates, map->node_count * sizeof *nodes->candidates));
    nodes->candidate_count = cluster_map_candidates(map, nodes->candidates);
    nodes->next = 0;
    share = moment_until(loop_now(nodes->loop), until) / ((int64_t)nodes->candidate_count + 1);
    nodes->pause = share < PAUSE_LEAST_NS  ? PAUSE_LEAST_NS
                   : share > PAUSE_MOST_NS ? PAUSE_MOST_NS
                                           : share;
    continue_soon(nodes);
}

void cluster_nodes_stop(struct cluster_nodes *nodes)
{
    nodes->busy = false;
    loop_disarm(nodes->loop, &nodes->onward);
    end_attempts(nodes, ALL_ATTEMPTS);
}

/* -- the whole --------------------------------------------------------------------------------- */

struct cluster_nodes *cluster_nodes_new(struct loop *loop, const struct store_address *address,
                                        const struct store_events *events, void *arg, char *fault,
                                        size_t size)
{
    struct cluster_nodes *nodes = mem_zeroed(sizeof *nodes);
    const struct url *url = address->urls;

    nodes->loop = loop;
    nodes->address = *address;
    nodes->events = events;
    nodes->events_arg = arg;
    nodes->onward = (struct loop_timer){.fire = on_turn, .owner = nodes};
    for (size_t i = 0; i < url->host_count; i++) {
        size_t seed = cluster_map_node(&nodes->map, url->hosts[i].name, url->hosts[i].port);
        if (seed != CLUSTER_NOWHERE)
            nodes->map.nodes[seed].seed = true;
    }
    if (nodes->map.node_count == 0)
        snprintf(fault, size, "no host of that name can exist");
    if (nodes->map.node_count > 0 && cluster_nodes_use(nodes, 0, fault, size))
        return nodes;
    cluster_nodes_free(nodes);
    return NULL;
}

void cluster_nodes_free(struct cluster_nodes *nodes)
{
    cluster_nodes_stop(nodes);
    for (size_t i = 0; i < nodes->map.node_count; i++) {
        struct cluster_way *way = nodes->map.nodes[i].way;
        if (way)
            close_store(way);
        free(way);
    }
    cluster_map_free(&nodes->map);
    free(nodes->candidates);
    free(nodes);
}
