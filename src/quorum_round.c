/* The rounds of a quorum. */
#include "quorum_state.h"
#include "lease.h"
#include "quorum_ruling.h"

void quorum_round_order(struct quorum_store *store, struct quorum_node *node, enum quorum_task task)
{
    struct quorum_order it = {.task = task, .round = store->round, .until = store->until};
    quorum_node_order(node, it);
}

void quorum_round_order_aside(struct quorum_store *store, struct quorum_node *node,
                              enum quorum_task task)
{
    struct quorum_order it = {.task = task,
                              .until = moment_plus(quorum_now(store), QUORUM_AFTERMATH_NS)};
    quorum_node_order(node, it);
}

static void cast(struct quorum_store *store, const struct quorum_node *node, enum vote vote,
                 const struct answer *answer)
{
    quorum_cast(&store->votes, (size_t)(node - store->nodes), vote, answer);
}

bool quorum_is_busy(const struct quorum_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        if (store->nodes[i].doing.task != TASK_NONE && store->nodes[i].store->sent)
            return true;
    }
    return false;
}

/* -- the end of an operation ----------------------------------------------------------------- */

void quorum_round_complete(struct quorum_store *store)
{
    struct answer copy = store->answer; /* the next operation may be asked for in there */

    store->task = TASK_NONE;
    store->round++;
    loop_disarm(store->loop, &store->timer);
    store->done(store->done_arg, &copy);
}

static void finish(struct quorum_store *store, enum quorum_outcome outcome)
{
    struct answer *answer = &store->answer;
    size_t approvals = quorum_approvals(&store->votes);
    bool carried = outcome == QUORUM_CARRIED;

    quorum_answer(&store->votes, outcome, answer);
    if (store->task == TASK_ACQUIRE) {
        quorum_claim_end(store, outcome);
        return;
    }
    if (store->task == TASK_RENEW && carried && store->hold == HOLD_OURS)
        store->lapse = lease_end(store->begun, store->matter.lock.lease);
    if (store->task == TASK_FORCE && carried && approvals == 0) {
        answer->verdict = VERDICT_REFUSED;
        answer->cause = CAUSE_CHANGED;
    }
    if (store->task == TASK_SURVEY && carried)
        quorum_views_report(&store->views, store->count - approvals, &store->asked);
    quorum_round_complete(store);
}

/* -- while it goes on ------------------------------------------------------------------------ */

/* Waits for so long at most, and no longer than it was to wait already. */
static void close_in(struct quorum_store *store, int64_t ns)
{
    struct moment due = moment_plus(quorum_now(store), ns);

    store->stage = STAGE_CLOSING;
    loop_arm(store->loop, &store->timer, moment_min(store->timer.due, due));
}

/* How long to wait for those who have a say in what has been decided without them. */
static int64_t hurry(const struct quorum_store *store)
{
    int64_t since = quorum_elapsed(store);
    return since > QUORUM_HURRY_NS ? since : QUORUM_HURRY_NS;
}

/* A majority has decided it: how long to wait for this node nevertheless. */
static int64_t patience_with(const struct quorum_store *store, const struct quorum_node *node)
{
    bool sent = node->store->sent, releasing = node->doing.task == TASK_RELEASE;

    /* One that remembers more would not let those count who remember little. */
    if (store->task == TASK_ACQUIRE && sent && quorum_is_young(&store->votes))
        return hurry(store);
    /* One that has not told yet who it is may be one of the others, by another name. */
    if (store->task == TASK_ACQUIRE)
        return *node->store->node ? 0 : quorum_elapsed(store) / 4;
    /* Who did not acquire it has no more to do, and ends: what did not go out by then is not done. */
    if (store->hold == HOLD_FOREIGN)
        return quorum_elapsed(store);
    if (store->task != TASK_RELEASE)
        return 0;
    /* What it was asked before has to be answered, or the release does not go out; and that may have to go out
     * twice, to a server that does not know the script. */
    if (releasing ? node->prompt && !sent : sent)
        return hurry(store);
    return node->prompt ? quorum_elapsed(store) : 0;
}

static int64_t patience_with_all(struct quorum_store *store)
{
    size_t missing = store->count - quorum_approvals(&store->votes);
    int64_t longest = 0;

    if (store->task == TASK_SURVEY)
        return quorum_views_are_clear(&store->views, missing) ? 0 : hurry(store);
    for (size_t i = 0; i < store->count; i++) {
        bool silent = store->votes.ballots[i].vote == VOTE_NONE;
        int64_t patience = silent ? patience_with(store, &store->nodes[i]) : 0;
        longest = patience > longest ? patience : longest;
    }
    return longest;
}

static void decide(struct quorum_store *store)
{
    enum quorum_outcome outcome = quorum_outcome(&store->votes);
    int64_t patience = 0;

    if (outcome == QUORUM_CARRIED && store->task == TASK_ACQUIRE && !store->settling) {
        quorum_claim_settle(store);
        outcome = quorum_outcome(&store->votes);
    }
    if (outcome == QUORUM_CARRIED)
        patience = patience_with_all(store);
    else if (outcome == QUORUM_OPEN && store->votes.rule == QUORUM_TAKE && !store->settling &&
             quorum_is_heard(&store->votes))
        patience = hurry(store);
    if (outcome != QUORUM_OPEN && patience == 0)
        finish(store, outcome);
    else if (patience > 0)
        close_in(store, patience);
}

void quorum_round_timer(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    switch (store->stage) {
    case STAGE_TOLD: quorum_round_complete(store); break;
    case STAGE_RETRYING: quorum_claim_start(store); break;
    case STAGE_LEAVING: quorum_claim_fail(store); break;
    case STAGE_VOTING:
    case STAGE_CLOSING:
        quorum_close(&store->votes);
        finish(store, quorum_outcome(&store->votes));
        break;
    }
}

/* -- what is heard --------------------------------------------------------------------------- */

/* What an answer asks for that nobody waits for any more. */
static void mend(struct quorum_store *store, struct quorum_node *node,
                 const struct quorum_order *done, const struct answer *answer)
{
    bool acquired = done->task == TASK_ACQUIRE && answer->verdict == VERDICT_GRANTED;

    if (store->hold == HOLD_OURS && acquired && !quorum_matter_is_settled(&store->matter, answer))
        quorum_round_order_aside(store, node, TASK_RENEW);
    else if (done->task == TASK_RENEW && quorum_ruling_is_missing(store, node, answer))
        quorum_round_order_aside(store, node, TASK_ACQUIRE);
}

void quorum_round_heard(void *arg, struct quorum_node *node, const struct quorum_order *done,
                        const struct answer *answer)
{
    struct quorum_store *store = arg;
    bool counts = store->task != TASK_NONE && store->stage <= STAGE_CLOSING;

    if (!counts || done->round != store->round) {
        if (node->doing.task == TASK_NONE)
            mend(store, node, done, answer);
        if (store->task != TASK_NONE && store->stage == STAGE_LEAVING && !quorum_is_busy(store))
            quorum_claim_fail(store);
        return;
    }
    if (quorum_ruling_is_fault(store, node, answer, &store->answer)) {
        if (store->task == TASK_ACQUIRE)
            quorum_claim_end(store, QUORUM_REFUSED);
        else
            quorum_round_complete(store);
        return;
    }
    struct quorum_ruling ruling = quorum_ruling(store, node, done, answer);
    if (ruling.then != TASK_NONE)
        quorum_round_order(store, node, ruling.then);
    else
        cast(store, node, ruling.vote, answer);
    decide(store);
}

/* -- beginning ------------------------------------------------------------------------------- */

void quorum_round_begin(struct quorum_store *store, enum quorum_rule rule)
{
    store->round++;
    store->stage = STAGE_VOTING;
    store->settling = false;
    store->begun = quorum_now(store);
    quorum_begin(&store->votes, rule, store->count, store->matter.lock.lease / NS_PER_MS);
    loop_arm(store->loop, &store->timer, store->until);
}

void quorum_round_order_all(struct quorum_store *store, enum quorum_task task)
{
    for (size_t i = 0; i < store->count; i++)
        quorum_round_order(store, &store->nodes[i], task);
}
