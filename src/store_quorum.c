/* A quorum of stores as one store. */
#include "store_quorum.h"
#include "mem.h"
#include "quorum_state.h"
#include "quorum_ruling.h"

#include <stdio.h>

static struct quorum_store *of(struct store *base)
{
    return (struct quorum_store *)(void *)base;
}

/* Begins an operation. */
static void prepare(struct quorum_store *store, enum quorum_task task, struct moment until,
                    store_done *done, void *arg)
{
    store->task = task;
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    store->tries = 0;
    loop_disarm(store->loop, &store->rest);
}

/* Answers when the loop turns, and asks nobody. */
static void tell(struct quorum_store *store, const struct answer *answer)
{
    store->answer = *answer;
    store->stage = STAGE_TOLD;
    loop_arm(store->loop, &store->timer, loop_now(store->loop));
}

static void tell_misfit(struct quorum_store *store, const char *what)
{
    struct answer answer = {.verdict = VERDICT_REFUSED, .cause = CAUSE_MISFIT};

    snprintf(answer.text, sizeof answer.text, "%s", what);
    tell(store, &answer);
}

/* True, and said so, if the nodes are known to be no quorum. */
static bool is_unfit(struct quorum_store *store)
{
    struct answer fault;

    if (!quorum_ruling_find_fault(store, &fault))
        return false;
    tell(store, &fault);
    return true;
}

static void take_lock(struct quorum_store *store, const struct lock_request *request)
{
    const uint64_t *fences = store->matter.lock.fences;
    const char *before = store->matter.lock.owner;
    bool same = before && strcmp(before, request->owner) == 0;

    if (!same)
        store->hold = HOLD_FOREIGN;
    quorum_matter_set_lock(&store->matter, request);
    store->matter.lock.fences = same ? fences : NULL;
}

static void quorum_acquire(struct store *base, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg)
{
    static const char *const modes[] = {
        [LOCK_SHARED] =
            "readers (--read, --shared) need one server: a quorum has exclusive locks alone",
        [LOCK_LIMIT] = "semaphores (--limit) need one server: a quorum has exclusive locks alone"};
    struct quorum_store *store = of(base);
    /* Who was refused and now listens has nothing to gain from asking again at once. */
    bool resting = request->listen && store->rest.added;
    struct moment next = store->rest.due;

    prepare(store, TASK_ACQUIRE, until, done, arg);
    take_lock(store, request);
    if (request->mode != LOCK_EXCLUSIVE) {
        tell_misfit(store, modes[request->mode]);
    } else if (is_unfit(store)) {
        return;
    } else if (resting) {
        tell(store, &store->refusal);
        loop_arm(store->loop, &store->rest, next);
    } else {
        quorum_claim_start(store);
    }
}

static void renew_all(struct quorum_store *store)
{
    quorum_round_begin(store, QUORUM_KEEP);
    for (size_t i = 0; i < store->count; i++) {
        bool missing = !store->nodes[i].held && quorum_ruling_may_fill(store);
        struct quorum_order it = {.task = missing ? TASK_ACQUIRE : TASK_RENEW,
                                  .round = store->round,
                                  .until = store->until};
        quorum_node_order(&store->nodes[i], it);
    }
}

static void quorum_renew(struct store *base, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct quorum_store *store = of(base);

    prepare(store, TASK_RENEW, until, done, arg);
    take_lock(store, request);
    if (store->hold != HOLD_FOREIGN || !is_unfit(store))
        renew_all(store);
}

static void release_all(struct quorum_store *store, bool bar)
{
    quorum_round_begin(store, QUORUM_FREE);
    for (size_t i = 0; i < store->count; i++) {
        struct quorum_node *node = &store->nodes[i];
        struct quorum_order it = {.task = TASK_RELEASE,
                                  .round = store->round,
                                  .until = store->until,
                                  .last = !store->matter.lock.in_time,
                                  .bar = (bar || node->unsure) && !store->matter.lock.in_time,
                                  .at_least = store->matter.lock.at_least};
        if (store->hold == HOLD_FOREIGN || quorum_node_may_hold(node))
            quorum_node_order(node, it);
        else
            quorum_cast(&store->votes, i, VOTE_VOID, NULL);
    }
    if (store->hold != HOLD_FOREIGN)
        store->hold = HOLD_OVER;
    if (quorum_outcome(&store->votes) != QUORUM_OPEN) /* nobody is to be asked */
        loop_arm(store->loop, &store->timer, store->begun);
}

static void quorum_release(struct store *base, const struct lock_request *request, bool uncertain,
                           struct moment until, store_done *done, void *arg)
{
    struct quorum_store *store = of(base);

    prepare(store, TASK_RELEASE, until, done, arg);
    take_lock(store, request);
    if (store->hold != HOLD_FOREIGN || !is_unfit(store))
        release_all(store, uncertain);
}

static void say_farewell(struct quorum_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        if (quorum_node_may_hold(&store->nodes[i]))
            quorum_node_farewell(&store->nodes[i]);
    }
}

static void quorum_farewell(struct store *base, const struct lock_request *request)
{
    struct quorum_store *store = of(base);

    loop_disarm(store->loop, &store->timer);
    loop_disarm(store->loop, &store->rest);
    store->task = TASK_NONE;
    take_lock(store, request);
    store->hold = HOLD_OVER;
    say_farewell(store);
}

static void quorum_force(struct store *base, const struct force_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct quorum_store *store = of(base);

    prepare(store, TASK_FORCE, until, done, arg);
    quorum_matter_set_force(&store->matter, request);
    if (!is_unfit(store)) {
        quorum_round_begin(store, QUORUM_FREE);
        quorum_round_order_all(store, TASK_FORCE);
    }
}

static void see(void *arg, const struct lock_view *view)
{
    struct quorum_node *node = arg;
    struct quorum_store *store = node->arg;

    if (store->task == TASK_SURVEY && node->doing.round == store->round)
        quorum_views_add(&store->views, (size_t)(node - store->nodes), view);
}

static void quorum_survey(struct store *base, const struct survey_request *request,
                          struct moment until, store_done *done, void *arg)
{
    struct quorum_store *store = of(base);

    prepare(store, TASK_SURVEY, until, done, arg);
    quorum_matter_set_survey(&store->matter, request);
    store->asked = store->matter.survey;
    store->matter.survey.each = see;
    if (!is_unfit(store)) {
        quorum_round_begin(store, QUORUM_READ);
        quorum_views_begin(&store->views, store->count);
        quorum_round_order_all(store, TASK_SURVEY);
    }
}

static void quorum_latch(struct store *base, const struct latch_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct quorum_store *store = of(base);

    (void)request;
    prepare(store, TASK_FORCE, until, done, arg);
    tell_misfit(store, "latches need one server: a quorum has exclusive locks alone");
}

static void rested(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    if (store->base.poked)
        store->base.poked(store->base.poked_arg);
}

/* A node's connection broke: it may have lost its data. While waiting there is nothing to be heard from one. */
static void node_poked(void *arg)
{
    struct quorum_store *store = arg;

    if (store->hold == HOLD_OURS && store->task == TASK_NONE && store->base.poked)
        store->base.poked(store->base.poked_arg);
}

/* What is to be given back, and was not yet, is so over the connections that are up. */
static void quorum_shut(struct store *base)
{
    struct quorum_store *store = of(base);

    loop_disarm(store->loop, &store->timer);
    loop_disarm(store->loop, &store->rest);
    if (store->hold == HOLD_SOUGHT || store->hold == HOLD_OVER)
        say_farewell(store);
    for (size_t i = 0; i < store->count; i++)
        store_close(store->nodes[i].store);
    quorum_views_free(&store->views);
    quorum_matter_free(&store->matter);
    free(store->names);
    free(store);
}

struct store *store_quorum_open(struct loop *loop, const struct store_node *nodes, size_t count)
{
    static const struct store_ops ops = {quorum_shut,    quorum_acquire,  quorum_renew,
                                         quorum_release, quorum_farewell, quorum_force,
                                         quorum_survey,  quorum_latch,    NULL};
    struct quorum_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->count = count;
    store->timer = (struct loop_timer){.fire = quorum_round_timer, .owner = store};
    store->rest = (struct loop_timer){.fire = rested, .owner = store};
    store->names = mem_zeroed(count * sizeof *store->names);
    memcpy(store->names, nodes, count * sizeof *nodes);
    for (size_t i = 0; i < count; i++) {
        store->nodes[i] = (struct quorum_node){.store = nodes[i].store,
                                               .loop = loop,
                                               .matter = &store->matter,
                                               .heard = quorum_round_heard,
                                               .arg = store};
        store_on_poke(nodes[i].store, node_poked, store);
    }
    return &store->base;
}
