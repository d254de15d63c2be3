#include "store/cluster/map_reader.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "rules/error.h"
#include "store/redis/session.h"

/* Between one and the next: so that all can be asked in the time that there is. */
#define PAUSE_LEAST_NS (10 * NS_PER_MS)
#define PAUSE_MOST_NS  (100 * NS_PER_MS)
/* So many are asked at a time; the one that was asked first makes room for another. */
#define ATTEMPTS_MAX 32

struct attempt {
    struct cluster_map_reader *reader;
    size_t node, rank;             /* in the order of candidates */
    struct redis_session *session; /* NULL: there is no attempt here */
    bool over;                     /* it has answered, or will not */
};

struct cluster_map_reader {
    struct loop *loop;
    struct cluster_nodes *nodes;
    size_t *candidates, count, next;
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

static void end(struct attempt *attempt)
{
    if (attempt->session)
        redis_session_free(attempt->session);
    attempt->session = NULL;
}

static void go_on(struct cluster_map_reader *reader)
{
    loop_arm(reader->loop, &reader->onward, loop_now(reader->loop));
}

/* The first one that cannot tell says why; the others, whether any of them is there. */
static void fail(struct attempt *attempt, enum cause cause, const char *text)
{
    struct cluster_map_reader *reader = attempt->reader;
    struct answer *outcome = &reader->outcome;
    bool reached = cause != CAUSE_UNREACHABLE || outcome->cause == CAUSE_NOT_READY;

    if (outcome->verdict == VERDICT_GRANTED || attempt->rank < reader->rank) {
        answer_fail(outcome, cause, "%s", text);
        reader->rank = attempt->rank;
    }
    if (reached)
        outcome->cause = CAUSE_NOT_READY;
}

static void take_error(struct attempt *attempt, const struct answer *error)
{
    struct cluster_map_reader *reader = attempt->reader;

    reader->over = error->cause == CAUSE_DENIED || error->cause == CAUSE_CLUSTER ||
                   error->cause == CAUSE_SYSTEM;
    if (reader->over)
        reader->outcome = *error;
    else
        fail(attempt, error->cause, error->text);
}

static void take_slots(struct attempt *attempt, const redisReply *slots)
{
    struct cluster_map_reader *reader = attempt->reader;
    struct cluster_map *map = cluster_nodes_map(reader->nodes);
    char asked[CLUSTER_HOST_SIZE];

    strcpy(asked, map->nodes[attempt->node].host); /* reading may move them */
    reader->over = cluster_map_read(map, slots, asked);
    if (reader->over)
        reader->outcome = (struct answer){.verdict = VERDICT_GRANTED};
    else
        fail(attempt, CAUSE_NOT_READY, "a node of the Cluster knows of no slots");
}

static void note(const struct attempt *attempt, const struct answer *failure)
{
    struct cluster_map *map = cluster_nodes_map(attempt->reader->nodes);
    struct cluster_node *node = &map->nodes[attempt->node];
    bool reached = !failure || failure->cause != CAUSE_UNREACHABLE;

    *(reached ? &node->answered : &node->failed) = loop_now(attempt->reader->loop);
}

static void answered(void *arg, redisReply *const *replies, size_t count,
                     const struct answer *failure)
{
    struct attempt *attempt = arg;
    struct answer error = {0};

    attempt->over = true;
    go_on(attempt->reader);
    if (attempt->reader->over)
        return;
    note(attempt, failure);
    if (count == 0) {
        take_error(attempt, failure);
    } else if (replies[0]->type == REDIS_REPLY_ERROR) {
        redis_error_answer(replies[0]->str, &error);
        take_error(attempt, &error);
    } else {
        take_slots(attempt, replies[0]);
    }
}

/* -- one after the other ----------------------------------------------------------------------- */

/* For another one; the oldest makes room. */
static struct attempt *make_room(struct cluster_map_reader *reader)
{
    struct attempt *room = &reader->attempts[0];

    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        struct attempt *attempt = &reader->attempts[i];
        if (!attempt->session)
            return attempt;
        if (attempt->rank < room->rank)
            room = attempt;
    }
    fail(room, CAUSE_UNREACHABLE, "no answer in time");
    end(room);
    return room;
}

static void ask_next(struct cluster_map_reader *reader)
{
    static const struct redis_session_events events = {.done = answered};
    static const char *slots[] = {"CLUSTER", "SLOTS"};
    struct attempt *attempt = make_room(reader);
    char fault[256];

    *attempt = (struct attempt){
        .reader = reader, .node = reader->candidates[reader->next], .rank = reader->next};
    reader->next++;
    attempt->session =
        redis_session_new(reader->loop, cluster_nodes_address(reader->nodes, attempt->node),
                          &events, attempt, fault, sizeof fault);
    if (attempt->session) {
        redis_session_add(attempt->session, 2, slots);
        redis_session_send(attempt->session, 1, 0, reader->until);
    } else {
        fail(attempt, CAUSE_UNREACHABLE, fault);
    }
}

/* Ends those that are over; how many are left. */
static size_t clear(struct cluster_map_reader *reader, bool all)
{
    size_t left = 0;

    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        if (all || reader->attempts[i].over)
            end(&reader->attempts[i]);
        left += reader->attempts[i].session != NULL;
    }
    return left;
}

static void onward(struct loop_timer *timer)
{
    struct cluster_map_reader *reader = timer->owner;
    struct moment now = loop_now(reader->loop);
    bool late = moment_reached(reader->until, now);
    size_t left = clear(reader, reader->over);

    if (!reader->over && !late && reader->next < reader->count) {
        ask_next(reader);
        loop_arm(reader->loop, &reader->onward, moment_plus(now, reader->pause));
        return;
    }
    if (!reader->over && left > 0)
        return; /* they answer, or fail at "until" */
    if (!reader->over && reader->outcome.verdict == VERDICT_GRANTED)
        answer_fail(&reader->outcome, CAUSE_NOT_READY,
                    "no node of the Cluster was asked for its slots in time");
    reader->busy = false;
    reader->done(reader->arg, &reader->outcome);
}

void cluster_map_reader_start(struct cluster_map_reader *reader, struct moment until,
                              store_done *done, void *arg)
{
    const struct cluster_map *map = cluster_nodes_map(reader->nodes);
    int64_t share;

    cluster_map_reader_stop(reader);
    reader->busy = true;
    reader->over = false;
    reader->outcome = (struct answer){.verdict = VERDICT_GRANTED};
    reader->until = until;
    reader->done = done;
    reader->arg = arg;
    reader->candidates =
        mem_checked(realloc(reader->candidates, map->node_count * sizeof *reader->candidates));
    reader->count = cluster_map_candidates(map, reader->candidates);
    reader->next = 0;
    share = moment_until(loop_now(reader->loop), until) / ((int64_t)reader->count + 1);
    reader->pause = share < PAUSE_LEAST_NS  ? PAUSE_LEAST_NS
                    : share > PAUSE_MOST_NS ? PAUSE_MOST_NS
                                            : share;
    go_on(reader);
}

void cluster_map_reader_stop(struct cluster_map_reader *reader)
{
    reader->busy = false;
    loop_disarm(reader->loop, &reader->onward);
    clear(reader, true);
}

bool cluster_map_reader_is_busy(const struct cluster_map_reader *reader)
{
    return reader->busy;
}

struct cluster_map_reader *cluster_map_reader_new(struct loop *loop, struct cluster_nodes *nodes)
{
    struct cluster_map_reader *reader = mem_zeroed(sizeof *reader);

    reader->loop = loop;
    reader->nodes = nodes;
    reader->onward = (struct loop_timer){.fire = onward, .owner = reader};
    return reader;
}

void cluster_map_reader_free(struct cluster_map_reader *reader)
{
    cluster_map_reader_stop(reader);
    free(reader->candidates);
    free(reader);
}
