/* The nodes of a Redis Cluster: who is asked, and who next. */
#include "cluster.h"

#include <stdio.h>

#include "dice.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"
#include "store_redis.h"

/* More than that in a row, and the nodes are at odds with each other. */
#define REDIRECTIONS_MAX 5
/* The least share of the time for a node that is asked for the map. */
#define SHARE_NS (500 * NS_PER_MS)

struct node {
    struct url url; /* of this node alone */
    struct store_address address;
    char host[CLUSTER_HOST_SIZE];
    struct store *store; /* NULL: not opened, or closed again */
    bool used;           /* and has not referred us to others */
};

struct cluster {
    struct loop *loop;
    struct store_address address;
    char name[300];
    void (*poked)(void *arg);
    void *poked_arg;
    struct cluster_map *map;
    struct node **nodes; /* as many as the map had when one was needed last */
    size_t node_count;
    size_t home;    /* has answered last, or is the first to be asked */
    size_t suspect; /* left a request unanswered; NOWHERE: none did */

    /* The request under way. */
    bool busy;
    unsigned slot;    /* CLUSTER_SLOTS: of none, asked of that node or for the map alone */
    cluster_ask *ask; /* NULL: the map */
    void *ask_arg;
    struct moment until, patient;
    store_done *done;
    void *arg;
    size_t node; /* whose answer is awaited */
    bool asking;
    bool refreshed; /* the map was read since it failed */
    bool contact;   /* some node has answered */
    unsigned redirections, failures;
    struct answer failure; /* why it may have to be given up */
    struct loop_timer timer;
    void (*due)(struct cluster *cluster); /* what it is for */

    /* Reading the map. */
    size_t *candidates, candidate_count, candidate_next;
    bool reading, map_read;
};

static void start(struct cluster *cluster);
static void ask_candidate(struct cluster *cluster);

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

/* -- nodes ----------------------------------------------------------------------------------- */

static void node_poked(void *arg)
{
    struct cluster *cluster = arg;

    if (!cluster->busy)
        cluster->poked(cluster->poked_arg);
}

/* The node's URL is the Cluster's, with one host. */
static struct node *new_node(struct cluster *cluster, const struct cluster_node *place)
{
    struct node *node = mem_zeroed(sizeof *node);

    strcpy(node->host, place->host);
    node->url = *cluster->address.urls;
    node->url.hosts[0] = (struct url_host){node->host, place->port};
    node->url.host_count = 1;
    node->address = cluster->address;
    node->address.urls = &node->url;
    node->address.url_count = 1;
    return node;
}

static struct node *node_at(struct cluster *cluster, size_t i)
{
    size_t count = cluster->map->node_count;

    if (count > cluster->node_count)
        cluster->nodes = mem_checked(realloc(cluster->nodes, count * sizeof(struct node *)));
    for (; cluster->node_count < count; cluster->node_count++)
        cluster->nodes[cluster->node_count] = NULL;
    if (!cluster->nodes[i])
        cluster->nodes[i] = new_node(cluster, &cluster->map->nodes[i]);
    return cluster->nodes[i];
}

/* NULL with a message in "fault". */
static struct store *open_node(struct cluster *cluster, size_t i, char *fault, size_t size)
{
    struct node *node = node_at(cluster, i);

    if (!node->store) {
        node->store = store_redis_open(cluster->loop, &node->address, fault, size);
        if (node->store)
            store_on_poke(node->store, node_poked, cluster);
    }
    return node->store;
}

/* -- giving up, and trying again --------------------------------------------------------------- */

static void fail(struct cluster *cluster, enum cause cause, const char *text)
{
    cluster->failure = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    snprintf(cluster->failure.text, sizeof cluster->failure.text, "%s", text);
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
    if (failure->cause == CAUSE_UNREACHABLE && cluster->candidate_count > 1) {
        char why[sizeof failure->text];
        const char *last = strstr(failure->text, ": ");
        snprintf(why, sizeof why, "%s", last ? last + 2 : failure->text);
        snprintf(failure->text, sizeof failure->text,
                 "cannot reach %.150s: at none of its nodes: %.60s", cluster->name, why);
    }
    finish(cluster, failure);
}

/* -- the map ----------------------------------------------------------------------------------- */

static void refreshed(struct cluster *cluster)
{
    size_t failed = cluster->failure.text[0] ? cluster->suspect : CLUSTER_NOWHERE;
    static const struct answer read = {.verdict = VERDICT_GRANTED};

    cluster->refreshed = true;
    cluster->suspect = CLUSTER_NOWHERE;
    if (!cluster->ask) {
        finish(cluster, &read);
        return;
    }
    size_t node = cluster_map_find(cluster->map, cluster->slot);
    if (node == CLUSTER_NOWHERE)
        fail(cluster, CAUSE_NOT_READY, "no node of the Cluster has the key's slot");
    if (node == CLUSTER_NOWHERE || node == failed)
        give_up(cluster);
    else
        start(cluster);
}

static void take_slots(void *arg, const struct redisReply *slots)
{
    struct cluster *cluster = arg;
    const char *host = cluster->map->nodes[cluster->node].host;
    char asked[CLUSTER_HOST_SIZE];

    strcpy(asked, host); /* the map's nodes may move */
    cluster->map_read = cluster_map_read(cluster->map, slots, asked);
}

static void slots_done(void *arg, const struct answer *answer)
{
    struct cluster *cluster = arg;

    if (!cluster->busy)
        return;
    if (cluster->map_read) {
        cluster->contact = true;
        cluster->home = cluster->node;
        refreshed(cluster);
    } else if (answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER) {
        finish(cluster, answer);
    } else {
        if (!cluster->failure.text[0] && answer->verdict == VERDICT_UNKNOWN)
            fail(cluster, answer->cause, answer->text);
        cluster->contact |= answer->verdict != VERDICT_UNKNOWN || answer->cause == CAUSE_NOT_READY;
        ask_candidate(cluster);
    }
}

static void ask_candidate(struct cluster *cluster)
{
    struct moment now = now_of(cluster);
    char fault[256];

    while (cluster->candidate_next < cluster->candidate_count &&
           !moment_reached(cluster->until, now)) {
        size_t left = cluster->candidate_count - cluster->candidate_next;
        int64_t share = moment_until(now, cluster->until) / (int64_t)left;
        cluster->node = cluster->candidates[cluster->candidate_next++];
        struct store *store = open_node(cluster, cluster->node, fault, sizeof fault);
        if (!store) {
            if (!cluster->failure.text[0])
                fail(cluster, CAUSE_UNREACHABLE, fault);
            continue;
        }
        cluster->reading = true;
        cluster->map_read = false;
        store_redis_slots(
            store, take_slots, cluster,
            moment_min(cluster->until, moment_plus(now, share > SHARE_NS ? share : SHARE_NS)),
            slots_done, cluster);
        return;
    }
    if (!cluster->failure.text[0])
        fail(cluster, CAUSE_NOT_READY, "no node of the Cluster knows its slots");
    later(cluster, now, give_up);
}

/* Who has answered last comes first; who has not, last. */
static void refresh(struct cluster *cluster)
{
    size_t count = cluster->map->node_count, next = 0;

    cluster->candidates =
        mem_checked(realloc(cluster->candidates, count * sizeof *cluster->candidates));
    if (cluster->home != cluster->suspect)
        cluster->candidates[next++] = cluster->home;
    for (size_t i = 0; i < count; i++) {
        if (i != cluster->home && i != cluster->suspect)
            cluster->candidates[next++] = i;
    }
    if (cluster->suspect != CLUSTER_NOWHERE)
        cluster->candidates[next++] = cluster->suspect;
    cluster->candidate_count = next;
    cluster->candidate_next = 0;
    ask_candidate(cluster);
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

static void answered(void *arg, const struct answer *answer);

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

static void send(struct cluster *cluster, size_t i)
{
    char fault[256];
    struct store *store = open_node(cluster, i, fault, sizeof fault);

    cluster->node = i;
    cluster->reading = false;
    cluster->nodes[i]->used = true;
    if (!store) {
        fail(cluster, CAUSE_UNREACHABLE, fault);
        later(cluster, now_of(cluster), look_elsewhere);
        return;
    }
    if (cluster->asking)
        store_redis_asking(store);
    cluster->ask(cluster->ask_arg, store, until_of(cluster, store), answered, cluster);
}

static void follow(struct cluster *cluster, const struct answer *answer)
{
    struct cluster_redirection redirection;
    size_t to = CLUSTER_NOWHERE;

    if (cluster_redirection_read(answer->moved, &redirection)) {
        const char *host = redirection.to.host;
        to = cluster_map_node(cluster->map, *host ? host : cluster->nodes[cluster->node]->host,
                              redirection.to.port);
    }
    cluster->contact = true;
    if (to == CLUSTER_NOWHERE || cluster->redirections++ == REDIRECTIONS_MAX) {
        char text[sizeof cluster->failure.text];
        snprintf(text, sizeof text, "the Cluster refers to %s: %.100s",
                 to == CLUSTER_NOWHERE ? "no host" : "one node after the other", answer->moved);
        fail(cluster, to == CLUSTER_NOWHERE ? CAUSE_UNFIT : CAUSE_NOT_READY, text);
        give_up(cluster);
        return;
    }
    cluster->asking = redirection.ask;
    if (!redirection.ask) {
        cluster->nodes[cluster->node]->used = false;
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
    if (!unknown)
        cluster->home = cluster->node;
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
    cluster->failure.text[0] = '\0';
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
    cluster->until = cluster->patient = until;
    cluster->done = done;
    cluster->arg = arg;
    cluster->refreshed = cluster->contact = cluster->asking = false;
    cluster->failures = 0;
    cluster->candidate_count = 0;
    cluster->failure.text[0] = '\0';
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
    cluster->patient = now_of(cluster);
    send(cluster, node);
}

void cluster_read_map(struct cluster *cluster, struct moment until, store_done *done, void *arg)
{
    begin(cluster, NULL, NULL, until, done, arg);
    cluster->patient = now_of(cluster);
    refresh(cluster);
}

const struct cluster_map *cluster_map_of(const struct cluster *cluster)
{
    return cluster->map;
}

/* -- the whole ----------------------------------------------------------------------------------- */

struct cluster *cluster_new(struct loop *loop, const struct store_address *address,
                            void (*poked)(void *arg), void *arg, char *fault, size_t size)
{
    struct cluster *cluster = mem_zeroed(sizeof *cluster);
    const struct url *url = address->urls;

    cluster->loop = loop;
    cluster->address = *address;
    cluster->poked = poked;
    cluster->poked_arg = arg;
    cluster->map = cluster_map_new();
    cluster->suspect = CLUSTER_NOWHERE;
    cluster->timer = (struct loop_timer){.fire = timer_due, .owner = cluster};
    url_print(url, cluster->name, sizeof cluster->name);
    for (size_t i = 0; i < url->host_count; i++)
        cluster_map_node(cluster->map, url->hosts[i].name, url->hosts[i].port);
    if (cluster->map->node_count == 0)
        snprintf(fault, size, "no host of that name can exist");
    if (cluster->map->node_count > 0 && open_node(cluster, 0, fault, size))
        return cluster;
    cluster_free(cluster);
    return NULL;
}

static void close_node(struct node *node)
{
    if (node->store)
        store_close(node->store);
    node->store = NULL;
}

void cluster_free(struct cluster *cluster)
{
    loop_disarm(cluster->loop, &cluster->timer);
    for (size_t i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i])
            close_node(cluster->nodes[i]);
        free(cluster->nodes[i]);
    }
    free(cluster->nodes);
    free(cluster->candidates);
    cluster_map_free(cluster->map);
    free(cluster);
}

/* Not the one whose answer was the last: its store is calling us. */
void cluster_tidy(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->node_count; i++) {
        struct node *node = cluster->nodes[i];
        if (node && !node->used && i != cluster->node)
            close_node(node);
        if (node)
            node->used = false;
    }
}

void cluster_abandon(struct cluster *cluster)
{
    cluster->busy = false;
    loop_disarm(cluster->loop, &cluster->timer);
}

struct store *cluster_last_node(struct cluster *cluster, unsigned slot)
{
    size_t i = cluster_map_find(cluster->map, slot);

    if ((slot == cluster->slot && !cluster->reading) || i == CLUSTER_NOWHERE)
        i = cluster->node;
    if (i >= cluster->node_count || !cluster->nodes[i])
        return NULL;
    return cluster->nodes[i]->store;
}
