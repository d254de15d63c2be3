/* Requests to a Redis Cluster: who is asked, and who next. */
#include "cluster.h"

#include <stdio.h>

#include "cluster_nodes.h"
#include "cluster_scout.h"
#include "dice.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"
#include "store_redis.h"

/* More than that in a row, and the nodes are at odds with each other. */
#define REDIRECTIONS_MAX 5
/* Who is still there so long after a request reads the map, and how long that may take. */
#define LOOK_NS          NS_PER_SEC
#define LOOK_PATIENCE_NS (5 * NS_PER_SEC)

struct cluster {
    struct loop *loop;
    char name[300];
    void (*poked)(void *arg);
    void *poked_arg;
    struct cluster_nodes *nodes;
    struct cluster_map *map; /* of the nodes */
    struct cluster_scout *scout;
    bool looked; /* at the map, or it is refused */
    struct loop_timer look;
    size_t home;    /* has answered last, or is the first to be asked */
    size_t suspect; /* left a request unanswered since the map was read last; NOWHERE: none */

    /* The request under way. */
    bool busy;
    unsigned slot;    /* CLUSTER_SLOTS: of none, asked of that node or for the map alone */
    cluster_ask *ask; /* NULL: the map */
    void *ask_arg;
    struct moment until, patient;
    store_done *done;
    void *arg;
    size_t node;    /* whose answer is awaited */
    bool asking;    /* it is only about to get the slot */
    bool refreshed; /* the map was read since it failed */
    bool contact;   /* some node has answered */
    unsigned redirections, failures;
    struct answer failure; /* why it may have to be given up; GRANTED: nothing so far */
    struct loop_timer timer;
    void (*due)(struct cluster *cluster); /* what it is for */
};

static void start(struct cluster *cluster);

static struct moment now_of(const struct cluster *cluster)
{
    return loop_now(cluster->loop);
}

static void finish(struct cluster *cluster, const struct answer *answer)
{
    cluster->busy = false;
    loop_disarm(cluster->loop, &cluster->timer);
    cluster->done(cluster->arg, answer);
}

/* What must not happen while somebody is still calling us. */
static void later(struct cluster *cluster, struct moment when, void (*due)(struct cluster *cluster))
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

static bool has_failed(const struct cluster *cluster)
{
    return cluster->failure.verdict == VERDICT_UNKNOWN;
}

static void fail(struct cluster *cluster, enum cause cause, const char *text)
{
    cluster->failure = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    snprintf(cluster->failure.text, sizeof cluster->failure.text, "%s", text);
}

/* What happened to one node happened to all of them. */
static void describe_outage(const struct cluster *cluster, struct answer *failure)
{
    char why[sizeof failure->text];
    const char *last = strstr(failure->text, ": ");

    snprintf(why, sizeof why, "%s", last ? last + 2 : failure->text);
    snprintf(failure->text, sizeof failure->text,
             "cannot reach %.150s: at none of its nodes: %.60s", cluster->name, why);
}

static void give_up(struct cluster *cluster)
{
    struct answer *failure = &cluster->failure;
    struct moment now = now_of(cluster);
    struct moment again = moment_plus(now, lease_backoff(cluster->failures++, dice()));

    if (failure->cause == CAUSE_UNREACHABLE && cluster->contact)
        failure->cause = CAUSE_NOT_READY;
    if (failure->cause == CAUSE_NOT_READY && again.ns < cluster->patient.ns) {
        cluster->refreshed = false;
        later(cluster, again, start);
        return;
    }
    if (failure->cause == CAUSE_UNREACHABLE && cluster->map->node_count > 1)
        describe_outage(cluster, failure);
    finish(cluster, failure);
}

/* -- the map ----------------------------------------------------------------------------------- */

static void refreshed(struct cluster *cluster)
{
    size_t node = cluster_map_find(cluster->map, cluster->slot);
    bool tried = has_failed(cluster) && node == cluster->suspect;

    cluster->refreshed = true;
    cluster->suspect = CLUSTER_NOWHERE;
    if (node == CLUSTER_NOWHERE)
        fail(cluster, CAUSE_NOT_READY, "no node of the Cluster has the key's slot");
    if (node == CLUSTER_NOWHERE || tried)
        give_up(cluster);
    else
        start(cluster);
}

static void scouted(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;
    bool granted = answer->verdict == VERDICT_GRANTED;
    bool refused = answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER;

    cluster->contact |= granted || answer->cause == CAUSE_NOT_READY;
    cluster->looked |= granted || refused;
    if (granted)
        cluster->home = cluster_scout_node(cluster->scout);
    if (refused || (granted && !cluster->ask)) {
        finish(cluster, answer);
    } else if (granted) {
        refreshed(cluster);
    } else {
        if (!has_failed(cluster))
            fail(cluster, answer->cause, answer->text);
        give_up(cluster);
    }
}

/* Who has answered last is asked first; who has not, last. */
static void refresh(struct cluster *cluster)
{
    cluster_scout_start(cluster->scout, cluster->home, cluster->suspect, cluster->until, scouted,
                        cluster);
}

/* -- a request ----------------------------------------------------------------------------------- */

/* The node will not do for now; another may have the slot already, or have taken it over. */
static void look_elsewhere(struct cluster *cluster)
{
    cluster->suspect = cluster->node;
    if (cluster->refreshed || cluster->slot == CLUSTER_SLOTS ||
        moment_reached(cluster->until, now_of(cluster)))
        give_up(cluster);
    else
        refresh(cluster);
}

/* As long as it is not known to be there, a node gets half of the time: the other half is for those that know
 * who is in its place. */
static struct moment until_of(const struct cluster *cluster, const struct store *store)
{
    struct moment now = now_of(cluster);
    bool alone = cluster->refreshed || cluster->map->node_count == 1;

    if (alone || cluster->slot == CLUSTER_SLOTS || store_redis_is_up(store))
        return cluster->until;
    return moment_plus(now, moment_until(now, cluster->until) / 2);
}

static void answered(void *arg, const struct answer *answer);

static void send(struct cluster *cluster, size_t i)
{
    char fault[256];
    struct store *store = cluster_nodes_use(cluster->nodes, i, fault, sizeof fault);

    cluster->node = i;
    if (!store) {
        fail(cluster, CAUSE_UNREACHABLE, fault);
        later(cluster, now_of(cluster), look_elsewhere);
        return;
    }
    if (cluster->asking)
        store_redis_asking(store);
    cluster->ask(cluster->ask_arg, store, until_of(cluster, store), answered, cluster);
}

/* Where a redirection leads to; no host: the same as that of the node that says so. */
static size_t place_of(struct cluster *cluster, const struct cluster_redirection *redirection)
{
    char host[CLUSTER_HOST_SIZE];

    strcpy(host,
           *redirection->to.host ? redirection->to.host : cluster->map->nodes[cluster->node].host);
    return cluster_map_node(cluster->map, host, redirection->to.port);
}

static void fail_by(struct cluster *cluster, const char *where, const struct answer *redirected)
{
    char text[sizeof cluster->failure.text];

    snprintf(text, sizeof text, "the Cluster refers to %s: %.100s", where, redirected->moved);
    fail(cluster, CAUSE_NOT_READY, text);
}

/* A node may not have heard yet what another one is called: the map has that one's address. */
static void follow(struct cluster *cluster, const struct answer *answer)
{
    struct cluster_redirection redirection;
    size_t to = cluster_redirection_read(answer->moved, &redirection)
                    ? place_of(cluster, &redirection)
                    : CLUSTER_NOWHERE;

    cluster->contact = true;
    if (to == CLUSTER_NOWHERE) {
        fail_by(cluster, "no host", answer);
        look_elsewhere(cluster);
        return;
    }
    if (cluster->redirections++ == REDIRECTIONS_MAX) {
        fail_by(cluster, "one node after the other", answer);
        give_up(cluster);
        return;
    }
    cluster->asking = redirection.ask;
    if (!redirection.ask) {
        cluster_nodes_dismiss(cluster->nodes, cluster->node);
        cluster_map_move(cluster->map, cluster->slot, to);
    }
    send(cluster, to);
}

static void answered(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;
    bool unknown = answer->verdict == VERDICT_UNKNOWN;

    if (!cluster->busy)
        return;
    if (unknown && answer->moved[0] && cluster->slot != CLUSTER_SLOTS) {
        follow(cluster, answer);
        return;
    }
    if (!unknown) {
        cluster->home = cluster->node;
        if (cluster->slot != CLUSTER_SLOTS && !cluster->asking)
            cluster_map_move(cluster->map, cluster->slot, cluster->node);
    }
    cluster->contact |= !unknown || answer->cause == CAUSE_NOT_READY;
    if (!unknown || answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER) {
        finish(cluster, answer);
    } else if (answer->maybe_done) {
        cluster->suspect = cluster->node;
        finish(cluster, answer);
    } else {
        cluster->failure = *answer;
        look_elsewhere(cluster);
    }
}

static void start(struct cluster *cluster)
{
    size_t node = cluster_map_find(cluster->map, cluster->slot);

    cluster->asking = false;
    cluster->redirections = 0;
    cluster->failure.verdict = VERDICT_GRANTED;
    if (node == CLUSTER_NOWHERE)
        node = cluster->home;
    if (node == cluster->suspect)
        refresh(cluster);
    else
        send(cluster, node);
}

static void begin(struct cluster *cluster, cluster_ask *ask, void *ask_arg, struct moment until,
                  store_done *done, void *arg)
{
    cluster->busy = true;
    cluster->slot = CLUSTER_SLOTS;
    cluster->ask = ask;
    cluster->ask_arg = ask_arg;
    cluster->until = until;
    cluster->patient = now_of(cluster);
    cluster->done = done;
    cluster->arg = arg;
    cluster->refreshed = cluster->contact = cluster->asking = false;
    cluster->failures = 0;
    cluster->failure.verdict = VERDICT_GRANTED;
}

void cluster_call(struct cluster *cluster, unsigned slot, cluster_ask *ask, void *ask_arg,
                  struct moment until, struct moment patient, store_done *done, void *arg)
{
    begin(cluster, ask, ask_arg, until, done, arg);
    cluster->slot = slot;
    cluster->patient = patient;
    start(cluster);
}

void cluster_call_node(struct cluster *cluster, size_t node, cluster_ask *ask, void *ask_arg,
                       struct moment until, store_done *done, void *arg)
{
    begin(cluster, ask, ask_arg, until, done, arg);
    send(cluster, node);
}

void cluster_read_map(struct cluster *cluster, struct moment until, store_done *done, void *arg)
{
    begin(cluster, NULL, NULL, until, done, arg);
    refresh(cluster);
}

const struct cluster_map *cluster_map_of(const struct cluster *cluster)
{
    return cluster->map;
}

/* A request of its own: one that comes meanwhile is not held up, and ends it where it needs the map itself. */
static void looked_around(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;

    cluster->looked = answer->cause != CAUSE_UNREACHABLE && answer->cause != CAUSE_NOT_READY;
}

static void look_around(struct loop_timer *timer)
{
    struct cluster *cluster = timer->owner;
    struct moment until = moment_plus(now_of(cluster), LOOK_PATIENCE_NS);

    if (!cluster->busy)
        cluster_scout_start(cluster->scout, cluster->home, CLUSTER_NOWHERE, until, looked_around,
                            cluster);
}

void cluster_tidy(struct cluster *cluster)
{
    cluster_nodes_tidy(cluster->nodes, cluster->node);
    if (!cluster->looked)
        loop_arm(cluster->loop, &cluster->look, moment_plus(now_of(cluster), LOOK_NS));
}

void cluster_abandon(struct cluster *cluster)
{
    cluster->busy = false;
    loop_disarm(cluster->loop, &cluster->timer);
    loop_disarm(cluster->loop, &cluster->look);
    cluster_scout_stop(cluster->scout);
}

struct store *cluster_last_node(struct cluster *cluster, unsigned slot)
{
    size_t node = cluster_map_find(cluster->map, slot);

    if (node == CLUSTER_NOWHERE || slot == cluster->slot)
        node = cluster->node;
    return cluster_nodes_store(cluster->nodes, node);
}

/* -- the whole ----------------------------------------------------------------------------------- */

static void node_poked(void *arg)
{
    struct cluster *cluster = arg;

    if (!cluster->busy)
        cluster->poked(cluster->poked_arg);
}

struct cluster *cluster_new(struct loop *loop, const struct store_address *address,
                            void (*poked)(void *arg), void *arg, char *fault, size_t size)
{
    struct cluster *cluster = mem_zeroed(sizeof *cluster);

    *cluster = (struct cluster){
        .loop = loop, .poked = poked, .poked_arg = arg, .suspect = CLUSTER_NOWHERE};
    cluster->timer = (struct loop_timer){.fire = timer_due, .owner = cluster};
    cluster->look = (struct loop_timer){.fire = look_around, .owner = cluster};
    url_print(address->urls, cluster->name, sizeof cluster->name);
    cluster->nodes = cluster_nodes_new(loop, address, node_poked, cluster, fault, size);
    if (!cluster->nodes) {
        free(cluster);
        return NULL;
    }
    cluster->map = cluster_nodes_map(cluster->nodes);
    cluster->scout = cluster_scout_new(loop, cluster->nodes);
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    cluster_abandon(cluster);
    cluster_scout_free(cluster->scout);
    cluster_nodes_free(cluster->nodes);
    free(cluster);
}
