/* Start reading at start_operation(), which chooses the node to ask, and at on_answer(), which
 * decides what to do next. */
#include "store/cluster/cluster.h"

#include <stdio.h>

#include "base/backoff.h"
#include "base/mem.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/cluster/nodes.h"
#include "store/redis/store.h"
#include "store/url.h"

/* More than that in a row, and the nodes are at odds with each other. */
#define REDIRECTIONS_MAX 5
/* In place of a slot: the request is about none, but asks a node, or only for the map. */
#define NO_SLOT CLUSTER_SLOTS
/* How long after a request the map is read ahead of time, and how long that may take. */
#define AHEAD_AFTER_NS NS_PER_SEC
#define AHEAD_TIME_NS  (5 * NS_PER_SEC)

struct cluster {
    struct loop *loop;
    char name[300];
    struct cluster_nodes *nodes;
    struct cluster_map *map; /* of the nodes */
    struct loop_timer idle;  /* a request has ended, and no other follows at once */
    bool map_known;          /* it was read, or nodes refuse to tell it */
    struct loop_timer ahead;
    size_t suspect; /* left a request unanswered since the map was read last; NOWHERE: none */

    /* The request under way. */
    bool busy;
    unsigned slot;              /* or NO_SLOT */
    struct operation operation; /* VERB_NONE: reads the map */
    struct moment retry_until;
    size_t node;    /* whose answer is awaited */
    bool asking;    /* it is only about to get the slot */
    bool refreshed; /* the map was read since it failed */
    bool contact;   /* some node has answered */
    unsigned redirections, failures;
    struct answer failure; /* why it may have to be given up; GRANTED: nothing so far */
    struct loop_timer timer;
    void (*due)(struct cluster *cluster); /* its purpose */
};

static void start_operation(struct cluster *cluster);

unsigned cluster_slot_of_key(const char *prefix, const char *key)
{
    char *name = key_in_store(prefix, key);
    unsigned slot = cluster_slot(name);

    free(name);
    return slot;
}

static struct moment now_of(const struct cluster *cluster)
{
    return loop_now(cluster->loop);
}

/* Reports the end of the operation, which is over before that: "done" may begin the next one at
 * once. If none begins, the timer "idle" lets connections go that are not needed. */
static void finish_operation(struct cluster *cluster, const struct answer *answer)
{
    cluster->busy = false;
    loop_disarm(cluster->loop, &cluster->timer);
    loop_arm(cluster->loop, &cluster->idle, now_of(cluster));
    cluster->operation.done(cluster->operation.arg, answer);
}

/* Has the timer call "due" then; the step must not happen within a call from outside. */
static void defer_step(struct cluster *cluster, struct moment when,
                       void (*due)(struct cluster *cluster))
{
    cluster->due = due;
    loop_arm(cluster->loop, &cluster->timer, when);
}

static void timer_due(struct loop_timer *timer)
{
    struct cluster *cluster = timer->owner;
    cluster->due(cluster);
}

/* -- giving up, and trying again --------------------------------------------------------------- */

/* Whether a node has failed to answer the request. */
static bool has_failed(const struct cluster *cluster)
{
    return cluster->failure.verdict == VERDICT_UNKNOWN;
}

/* The request has failed at all nodes that were tried: tries again later, if there is time and the
 * Cluster may be about to recover; else answers the failure. */
static void retry_or_give_up(struct cluster *cluster)
{
    struct answer *failure = &cluster->failure;
    struct moment now = now_of(cluster);
    struct moment again = backoff_next(&cluster->failures, now);

    if (failure->cause == CAUSE_UNREACHABLE && cluster->contact) /* another node was reached */
        failure->cause = CAUSE_NOT_READY;
    if (failure->cause == CAUSE_NOT_READY && again.ns < cluster->retry_until.ns) {
        cluster->refreshed = false;
        defer_step(cluster, again, start_operation);
        return;
    }
    if (failure->cause == CAUSE_UNREACHABLE && cluster->map->node_count > 1) {
        /* The failure of one node stands for that of all: the Cluster's name replaces the node's,
         * which its text has in front. */
        const char *why = strstr(failure->text, ": ");
        if (why)
            memmove(failure->text, why + 2, strlen(why + 2) + 1);
        answer_prepend(failure, "cannot reach %s: at none of its nodes: ", cluster->name);
    }
    finish_operation(cluster, failure);
}

/* -- the map ----------------------------------------------------------------------------------- */

/* The map was read anew: tries the request where the slot is now, unless that is the node that
 * has just failed. */
static void on_refreshed(struct cluster *cluster)
{
    size_t node = cluster_map_find(cluster->map, cluster->slot);
    bool tried = has_failed(cluster) && node == cluster->suspect;

    cluster->refreshed = true;
    cluster->suspect = CLUSTER_NOWHERE;
    if (node == CLUSTER_NOWHERE)
        answer_fail(&cluster->failure, CAUSE_NOT_READY,
                    "no node of the Cluster has the key's slot");
    if (node == CLUSTER_NOWHERE || tried)
        retry_or_give_up(cluster);
    else
        start_operation(cluster);
}

/* The map was read, or could not be: continues the operation by it; where only the map was wanted
 * (VERB_NONE), or the user is refused, or there is no Cluster, that is the answer. Otherwise tries
 * again later. */
static void map_was_read(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;
    bool granted = answer->verdict == VERDICT_GRANTED;
    bool refused = answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER;

    /* NOT_READY is the answer where a node was reached, but did not tell the map. */
    cluster->contact |= granted || answer->cause == CAUSE_NOT_READY;
    cluster->map_known |= granted || refused;
    if (refused || (granted && cluster->operation.verb == VERB_NONE)) {
        finish_operation(cluster, answer);
    } else if (granted) {
        on_refreshed(cluster);
    } else {
        if (!has_failed(cluster) || answer->full) /* why a node failed says more than this */
            cluster->failure = *answer;
        retry_or_give_up(cluster);
    }
}

/* Reads the map anew for the operation under way: map_was_read() follows. */
static void refresh_map(struct cluster *cluster)
{
    cluster_nodes_read(cluster->nodes, cluster->operation.until, map_was_read, cluster);
}

/* -- a request --------------------------------------------------------------------------------- */

/* The node that was asked will not do for now: reads the map, as another one may have the slot by
 * now; or gives up, if it was read since, no slot is asked about, or time is over. */
static void look_elsewhere(struct cluster *cluster)
{
    cluster->suspect = cluster->node;
    if (cluster->refreshed || cluster->slot == NO_SLOT ||
        moment_reached(cluster->operation.until, now_of(cluster)))
        retry_or_give_up(cluster);
    else
        refresh_map(cluster);
}

static void on_answer(void *arg, const struct answer *answer);

/* Sends the operation to node number i of the map; if that cannot even be tried, looks for another
 * one. */
static void send_to_node(struct cluster *cluster, size_t i)
{
    char fault[256];
    struct store *store = cluster_nodes_use(cluster->nodes, i, fault, sizeof fault);

    cluster->node = i;
    if (!store) {
        answer_fail(&cluster->failure, CAUSE_UNREACHABLE, "%s", fault);
        defer_step(cluster, now_of(cluster), look_elsewhere);
        return;
    }
    if (cluster->asking)
        store_redis_asking(store);
    struct operation operation = cluster->operation;
    bool alone = cluster->refreshed || cluster->map->node_count == 1; /* no other will be asked */
    if (!alone && cluster->slot != NO_SLOT && !store_redis_is_up(store)) {
        /* The other half of the time is for asking other nodes which one is in its place. */
        struct moment now = now_of(cluster);
        operation.until = moment_plus(now, moment_until(now, operation.until) / 2);
    }
    operation.done = on_answer;
    operation.arg = cluster;
    store_start(store, &operation);
}

/* Follows a redirection (MOVED, ASK; "moved" is the node's words) to another node. One that leads
 * nowhere, or one too many, is a failure. */
static void follow_moved(struct cluster *cluster, const char *moved)
{
    struct cluster_redirection redirection;
    size_t to = CLUSTER_NOWHERE;

    if (cluster_redirection_read(moved, &redirection)) {
        char *host = redirection.to.host;
        if (!*host) /* the host is that of the node that says so */
            strcpy(host, cluster->map->nodes[cluster->node].host);
        to = cluster_map_node(cluster->map, host, redirection.to.port);
    }

    cluster->contact = true;
    if (to == CLUSTER_NOWHERE) {
        answer_fail(&cluster->failure, CAUSE_NOT_READY, "the Cluster refers to no host: %s", moved);
        look_elsewhere(cluster);
        return;
    }
    if (cluster->redirections++ == REDIRECTIONS_MAX) {
        answer_fail(&cluster->failure, CAUSE_NOT_READY,
                    "too many redirections between Cluster nodes: %s", moved);
        retry_or_give_up(cluster);
        return;
    }
    cluster->asking = redirection.ask;
    if (redirection.ask) /* the slot is there still */
        cluster_nodes_keep(cluster->nodes, cluster->node);
    else
        cluster_map_move(cluster->map, cluster->slot, to);
    send_to_node(cluster, to);
}

/* Takes a node's answer: follows it to another node; looks elsewhere, where the node failed and
 * cannot have done it; or ends the operation with it. */
static void on_answer(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;
    bool unknown = answer->verdict == VERDICT_UNKNOWN;

    if (!cluster->busy) /* the request was abandoned */
        return;
    /* Which nodes answer decides which one is asked next. */
    struct cluster_node *node = &cluster->map->nodes[cluster->node];
    bool silent = answer->cause == CAUSE_UNREACHABLE;
    *(silent ? &node->failed : &node->answered) = now_of(cluster);
    const char *moved = store_redis_moved(cluster_nodes_store(cluster->nodes, cluster->node));
    if (answer->cause == CAUSE_CLUSTER && *moved && cluster->slot != NO_SLOT) {
        follow_moved(cluster, moved);
        return;
    }
    cluster_nodes_keep(cluster->nodes, cluster->node);
    if (!unknown && cluster->slot != NO_SLOT && !cluster->asking)
        cluster_map_move(cluster->map, cluster->slot, cluster->node);
    cluster->contact |= !unknown || answer->cause == CAUSE_NOT_READY;
    if (!unknown || answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER) {
        finish_operation(cluster, answer);
    } else if (answer->maybe_done) {
        cluster->suspect = cluster->node;
        finish_operation(cluster, answer);
    } else {
        cluster->failure = *answer;
        look_elsewhere(cluster);
    }
}

/* Sends the operation to the node that has its slot. Where the map does not say, any node refers to
 * the right one. If that node has just failed (suspect), the map is read first. */
static void start_operation(struct cluster *cluster)
{
    size_t node = cluster_map_find(cluster->map, cluster->slot);

    cluster->asking = false;
    cluster->redirections = 0;
    cluster->failure.verdict = VERDICT_GRANTED;
    if (node == CLUSTER_NOWHERE) {
        size_t *nodes FREED = mem_zeroed(cluster->map->node_count * sizeof *nodes);
        cluster_map_candidates(cluster->map, nodes); /* one at least: the URL's */
        node = nodes[0];
    }
    if (node == cluster->suspect)
        refresh_map(cluster);
    else
        send_to_node(cluster, node);
}

/* Notes the operation, about no slot and without retries, and forgets what became of the one
 * before. */
static void begin_operation(struct cluster *cluster, const struct operation *operation)
{
    cluster->busy = true;
    loop_disarm(cluster->loop, &cluster->idle);
    cluster->slot = NO_SLOT;
    cluster->operation = *operation;
    cluster->retry_until = now_of(cluster);
    cluster->refreshed = cluster->contact = cluster->asking = false;
    cluster->failures = 0;
    cluster->failure.verdict = VERDICT_GRANTED;
}

void cluster_call(struct cluster *cluster, unsigned slot, const struct operation *operation,
                  struct moment retry_until)
{
    begin_operation(cluster, operation);
    cluster->slot = slot;
    cluster->retry_until = retry_until;
    start_operation(cluster);
}

void cluster_call_node(struct cluster *cluster, size_t node, const struct operation *operation)
{
    begin_operation(cluster, operation);
    send_to_node(cluster, node);
}

void cluster_read_map(struct cluster *cluster, struct moment until, store_done *done, void *arg)
{
    begin_operation(cluster, &(struct operation){.until = until, .done = done, .arg = arg});
    refresh_map(cluster);
}

const struct cluster_map *cluster_map_of(const struct cluster *cluster)
{
    return cluster->map;
}

/* The map was read ahead of time, or not: if it may be told later, on_idle() tries again. */
static void was_read_ahead(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;

    cluster->map_known = !cause_may_pass(answer->cause);
}

/* Reads the map while no operation is under way, so that the next one need not. That does not wait
 * for this: it ends it where it reads the map itself. */
static void read_ahead(struct loop_timer *timer)
{
    struct cluster *cluster = timer->owner;
    struct moment until = moment_plus(now_of(cluster), AHEAD_TIME_NS);

    if (!cluster->busy)
        cluster_nodes_read(cluster->nodes, until, was_read_ahead, cluster);
}

/* No request has followed the last one at once: closes nodes of no use, and, if the map is not
 * known, begins to read it before the next request needs it. */
static void on_idle(struct loop_timer *timer)
{
    struct cluster *cluster = timer->owner;

    cluster_nodes_tidy(cluster->nodes, cluster->node);
    if (cluster->suspect != CLUSTER_NOWHERE && !*cluster->map->nodes[cluster->suspect].host)
        cluster->suspect = CLUSTER_NOWHERE; /* the node was forgotten */
    if (!cluster->map_known)
        loop_arm(cluster->loop, &cluster->ahead, moment_plus(now_of(cluster), AHEAD_AFTER_NS));
}

/* Ends the request under way, if there is one; its callback "done" is not called. For a caller that
 * closes the cluster, or releases without waiting. */
static void abandon_request(struct cluster *cluster)
{
    cluster->busy = false;
    loop_disarm(cluster->loop, &cluster->timer);
    loop_disarm(cluster->loop, &cluster->idle);
    loop_disarm(cluster->loop, &cluster->ahead);
    cluster_nodes_stop(cluster->nodes);
}

enum release_sent cluster_release_nowait(struct cluster *cluster, unsigned slot,
                                         const struct release_request *request)
{
    size_t node = cluster_map_find(cluster->map, slot);

    if (node == CLUSTER_NOWHERE || slot == cluster->slot) /* the request about it went there */
        node = cluster->node;
    struct store *store = cluster_nodes_store(cluster->nodes, node);
    enum release_sent sent = store ? store_release_nowait(store, request) : RELEASE_UNSENT;
    abandon_request(cluster);
    return sent;
}

bool cluster_is_busy(const struct cluster *cluster)
{
    return cluster->busy;
}

/* -- the whole --------------------------------------------------------------------------------- */

struct cluster *cluster_new(struct loop *loop, const struct store_address *address,
                            const struct store_events *events, void *arg, char *fault, size_t size)
{
    struct cluster *cluster = mem_zeroed(sizeof *cluster);

    *cluster = (struct cluster){.loop = loop, .suspect = CLUSTER_NOWHERE};
    cluster->timer = (struct loop_timer){.fire = timer_due, .owner = cluster};
    cluster->idle = (struct loop_timer){.fire = on_idle, .owner = cluster};
    cluster->ahead = (struct loop_timer){.fire = read_ahead, .owner = cluster};
    url_print(address->urls, cluster->name, sizeof cluster->name);
    cluster->nodes = cluster_nodes_new(loop, address, events, arg, fault, size);
    if (!cluster->nodes) {
        free(cluster);
        return NULL;
    }
    cluster->map = cluster_nodes_map(cluster->nodes);
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    abandon_request(cluster);
    cluster_nodes_free(cluster->nodes);
    free(cluster);
}
