/* Reading the map of a Redis Cluster. */
#include "cluster_scout.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#include "loop.h"
#include "mem.h"
#include "redis_error.h"
#include "redis_link.h"

/* The least share of the time for one node. */
#define SHARE_NS (500 * NS_PER_MS)

struct cluster_scout {
    struct loop *loop;
    struct cluster_nodes *nodes;
    size_t *candidates, count, next;
    size_t node;
    struct redis_link *link; /* to that node; NULL: none yet */
    bool over;               /* nobody else is to be asked */
    struct answer outcome;   /* so far; GRANTED: nobody has failed yet */
    struct moment until;
    store_done *done;
    void *arg;
    struct loop_timer onward; /* somebody is still calling us */
};

static void hang_up(struct cluster_scout *scout)
{
    if (scout->link)
        redis_link_free(scout->link);
    scout->link = NULL;
}

static void go_on(struct cluster_scout *scout)
{
    loop_arm(scout->loop, &scout->onward, loop_now(scout->loop));
}

/* The first one that cannot tell says why; the others, whether any of them is there. */
static void fail(struct cluster_scout *scout, enum cause cause, const char *text)
{
    struct answer *outcome = &scout->outcome;

    if (outcome->verdict == VERDICT_GRANTED) {
        *outcome = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
        snprintf(outcome->text, sizeof outcome->text, "%s", text);
    }
    if (cause != CAUSE_UNREACHABLE)
        outcome->cause = CAUSE_NOT_READY;
}

static void take_error(struct cluster_scout *scout, const struct answer *error)
{
    scout->over = error->cause == CAUSE_DENIED || error->cause == CAUSE_CLUSTER;
    if (scout->over)
        scout->outcome = *error;
    else
        fail(scout, error->cause, error->text);
}

static void take_slots(struct cluster_scout *scout, const redisReply *slots)
{
    struct cluster_map *map = cluster_nodes_map(scout->nodes);
    char asked[CLUSTER_HOST_SIZE];

    strcpy(asked, map->nodes[scout->node].host); /* reading may move them */
    scout->over = cluster_map_read(map, slots, asked);
    if (scout->over)
        scout->outcome = (struct answer){.verdict = VERDICT_GRANTED};
    else
        fail(scout, CAUSE_NOT_READY, "a node of the Cluster knows of no slots");
}

static void answered(void *arg, redisReply *const *replies, size_t count,
                     const struct answer *failure)
{
    struct cluster_scout *scout = arg;
    struct answer error = {0};

    if (count == 0) {
        take_error(scout, failure);
    } else if (replies[0]->type == REDIS_REPLY_ERROR) {
        redis_error_answer(replies[0]->str, &error);
        take_error(scout, &error);
    } else {
        take_slots(scout, replies[0]);
    }
    go_on(scout);
}

static void broken(void *arg)
{
    (void)arg; /* it has answered already */
}

static struct moment share_of_time(const struct cluster_scout *scout)
{
    struct moment now = loop_now(scout->loop);
    int64_t share = moment_until(now, scout->until) / (int64_t)(scout->count - scout->next);

    return moment_min(scout->until, moment_plus(now, share > SHARE_NS ? share : SHARE_NS));
}

static void ask_next(struct cluster_scout *scout)
{
    static const struct redis_link_events events = {answered, broken};
    static const char *slots[] = {"CLUSTER", "SLOTS"};
    struct moment until = share_of_time(scout);
    char fault[256];

    scout->node = scout->candidates[scout->next++];
    scout->link = redis_link_new(scout->loop, cluster_nodes_address(scout->nodes, scout->node),
                                 &events, scout, fault, sizeof fault);
    if (scout->link) {
        redis_link_add(scout->link, 2, slots, NULL);
        redis_link_send(scout->link, 1, 0, until);
    } else {
        fail(scout, CAUSE_UNREACHABLE, fault);
        go_on(scout);
    }
}

static void onward(struct loop_timer *timer)
{
    struct cluster_scout *scout = timer->owner;
    bool late = moment_reached(scout->until, loop_now(scout->loop));

    hang_up(scout);
    if (!scout->over && !late && scout->next < scout->count) {
        ask_next(scout);
        return;
    }
    if (!scout->over && scout->outcome.verdict == VERDICT_GRANTED)
        fail(scout, CAUSE_NOT_READY, "no node of the Cluster was asked for its slots in time");
    scout->done(scout->arg, &scout->outcome);
}

void cluster_scout_start(struct cluster_scout *scout, size_t first, size_t last,
                         struct moment until, store_done *done, void *arg)
{
    size_t count = cluster_nodes_map(scout->nodes)->node_count;
    size_t next = 0;

    cluster_scout_stop(scout);
    scout->over = false;
    scout->outcome = (struct answer){.verdict = VERDICT_GRANTED};
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
    go_on(scout);
}

void cluster_scout_stop(struct cluster_scout *scout)
{
    loop_disarm(scout->loop, &scout->onward);
    hang_up(scout);
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
    scout->onward = (struct loop_timer){.fire = onward, .owner = scout};
    return scout;
}

void cluster_scout_free(struct cluster_scout *scout)
{
    cluster_scout_stop(scout);
    free(scout->candidates);
    free(scout);
}
