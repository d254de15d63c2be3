/* Reading the map of a Redis Cluster. */
#include "cluster_scout.h"

#include <stdio.h>

#include "loop.h"
#include "mem.h"
#include "store_redis.h"

/* The least share of the time for one node. */
#define SHARE_NS (500 * NS_PER_MS)

struct cluster_scout {
    struct loop *loop;
    struct cluster_nodes *nodes;
    size_t *candidates, count, next;
    size_t node;
    bool busy, told;
    struct answer failure; /* the first one; none yet: GRANTED */
    struct moment until;
    store_done *done;
    void *arg;
    struct loop_timer end; /* nobody is left to ask: somebody is still calling us */
};

static void ask_next(struct cluster_scout *scout);

static void finish(struct cluster_scout *scout, const struct answer *answer)
{
    cluster_scout_stop(scout);
    scout->done(scout->arg, answer);
}

static void take_slots(void *arg, const struct redisReply *slots)
{
    struct cluster_scout *scout = arg;
    struct cluster_map *map = cluster_nodes_map(scout->nodes);
    char asked[CLUSTER_HOST_SIZE];

    strcpy(asked, map->nodes[scout->node].host); /* reading may move them */
    scout->told = cluster_map_read(map, slots, asked);
}

static void fail(struct cluster_scout *scout, enum cause cause, const char *text)
{
    struct answer *failure = &scout->failure;
    bool reached = cause != CAUSE_UNREACHABLE;

    if (failure->verdict == VERDICT_GRANTED) {
        *failure = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
        snprintf(failure->text, sizeof failure->text, "%s", text);
    }
    if (reached)
        failure->cause = CAUSE_NOT_READY;
}

static void answered(void *arg, const struct answer *answer)
{
    struct cluster_scout *scout = arg;
    bool unknown = answer->verdict == VERDICT_UNKNOWN;

    if (!scout->busy)
        return;
    cluster_nodes_dismiss(scout->nodes, scout->node);
    if (scout->told || answer->cause == CAUSE_DENIED || answer->cause == CAUSE_CLUSTER) {
        finish(scout, answer);
        return;
    }
    fail(scout, unknown ? answer->cause : CAUSE_NOT_READY,
         unknown ? answer->text : "a node of the Cluster knows of no slots");
    ask_next(scout);
}

static void nobody_left(struct loop_timer *timer)
{
    struct cluster_scout *scout = timer->owner;
    struct answer failure = scout->failure;

    if (failure.verdict == VERDICT_GRANTED)
        failure = (struct answer){.verdict = VERDICT_UNKNOWN,
                                  .cause = CAUSE_NOT_READY,
                                  .text = "no node of the Cluster was asked for its slots in time"};
    finish(scout, &failure);
}

static void ask_next(struct cluster_scout *scout)
{
    struct moment now = loop_now(scout->loop);
    char fault[256];

    while (scout->next < scout->count && !moment_reached(scout->until, now)) {
        int64_t share = moment_until(now, scout->until) / (int64_t)(scout->count - scout->next);
        struct moment soon = moment_plus(now, share > SHARE_NS ? share : SHARE_NS);
        scout->node = scout->candidates[scout->next++];
        struct store *store = cluster_nodes_use(scout->nodes, scout->node, fault, sizeof fault);
        if (store) {
            store_redis_slots(store, take_slots, scout, moment_min(scout->until, soon), answered,
                              scout);
            return;
        }
        fail(scout, CAUSE_UNREACHABLE, fault);
    }
    loop_arm(scout->loop, &scout->end, now);
}

void cluster_scout_start(struct cluster_scout *scout, size_t first, size_t last,
                         struct moment until, store_done *done, void *arg)
{
    size_t count = cluster_nodes_map(scout->nodes)->node_count;
    size_t next = 0;

    scout->busy = true;
    scout->told = false;
    scout->failure = (struct answer){.verdict = VERDICT_GRANTED};
    scout->until = until;
    scout->done = done;
    scout->arg = arg;
    scout->candidates = mem_checked(realloc(scout->candidates, count * sizeof *scout->candidates));
    if (first != last)
        scout->candidates[next++] = first;
    for (size_t i = 0; i < count; i++) {
        if (i != first && i != last)
            scout->candidates[next++] = i;
    }
    if (last != CLUSTER_NOWHERE)
        scout->candidates[next++] = last;
    scout->count = next;
    scout->next = 0;
    ask_next(scout);
}

void cluster_scout_stop(struct cluster_scout *scout)
{
    scout->busy = false;
    loop_disarm(scout->loop, &scout->end);
}

size_t cluster_scout_node(const struct cluster_scout *scout)
{
    return scout->node;
}

struct cluster_scout *cluster_scout_new(struct loop *loop, struct cluster_nodes *nodes)
{
    struct cluster_scout *scout = mem_zeroed(sizeof *scout);

    scout->loop = loop;
    scout->nodes = nodes;
    scout->end = (struct loop_timer){.fire = nobody_left, .owner = scout};
    return scout;
}

void cluster_scout_free(struct cluster_scout *scout)
{
    cluster_scout_stop(scout);
    free(scout->candidates);
    free(scout);
}
