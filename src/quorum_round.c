/* The rounds of a quorum. */
#include "quorum_round.h"
#include "dice.h"
#include "lease.h"
#include "quorum_ruling.h"

/* Between two tries of one who waits. */
#define REST_LEAST_NS (50 * NS_PER_MS)
#define REST_MOST_NS  (500 * NS_PER_MS)
/* Who does not wait tries again where nobody has it: several got in each other's way. */
#define TRIES          6
#define RETRY_LEAST_NS (10 * NS_PER_MS)
#define RETRY_MOST_NS  (60 * NS_PER_MS)
/* A majority has spoken, but it depends on others: they get as long again, this at least. */
#define HURRY_NS (50 * NS_PER_MS)
/* For what a try has got to be given back; besides, half as long again as the try took. */
#define LEAVING_NS (5 * NS_PER_MS)
/* How far ahead of our clock: for the way there, and for clocks that differ. */
#define PROPOSAL_NS (50 * NS_PER_MS)
/* What is set right, or given back, behind an answer. */
#define AFTERMATH_NS (2 * NS_PER_SEC)

static struct moment now_of(const struct quorum_store *store)
{
    return loop_now(store->loop);
}

static int64_t elapsed(const struct quorum_store *store)
{
    return moment_until(store->begun, now_of(store));
}

static void order(struct quorum_store *store, struct quorum_node *node, enum quorum_task task)
{
    struct quorum_order it = {.task = task, .round = store->round, .until = store->until};
    quorum_node_order(node, it);
}

/* Whose answer nobody waits for. */
static void order_aside(struct quorum_store *store, struct quorum_node *node, enum quorum_task task)
{
    struct quorum_order it = {.task = task, .until = moment_plus(now_of(store), AFTERMATH_NS)};
    quorum_node_order(node, it);
}

static void cast(struct quorum_store *store, const struct quorum_node *node, enum vote vote,
                 const struct answer *answer)
{
    quorum_cast(&store->votes, (size_t)(node - store->nodes), vote, answer);
}

/* -- the end of an operation ----------------------------------------------------------------- */

static void complete(struct quorum_store *store, const struct answer *answer)
{
    struct answer copy = *answer; /* the next operation may be asked for in there */

    store->task = TASK_NONE;
    store->round++;
    loop_disarm(store->loop, &store->timer);
    store->done(store->done_arg, &copy);
}

static void rest(struct quorum_store *store, struct loop_timer *timer, int64_t least, int64_t most)
{
    loop_arm(store->loop, timer, moment_plus(now_of(store), dice_between(least, most)));
}

/* Gives back what a try may have got, also where it was not answered. The owner is not barred from coming again. */
static void give_up(struct quorum_store *store)
{
    store->hold = HOLD_OVER;
    for (size_t i = 0; i < store->count; i++) {
        if (quorum_node_may_hold(&store->nodes[i]))
            order_aside(store, &store->nodes[i], TASK_RELEASE);
    }
}

/* Refused, but nobody has it: others tried at the same time. */
static bool is_contested(const struct quorum_store *store, const struct answer *answer)
{
    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD &&
           quorum_rivals(&store->votes) < quorum_majority(store->count);
}

static void tell_failure(struct quorum_store *store)
{
    struct answer *answer = &store->answer;

    if (answer->verdict == VERDICT_UNKNOWN) {
        answer->maybe_done = false;
        for (size_t i = 0; i < store->count; i++)
            answer->maybe_done |= store->nodes[i].unsure;
    } else {
        rest(store, &store->rest, REST_LEAST_NS, REST_MOST_NS);
    }
    store->refusal = *answer;
    complete(store, answer);
}

static bool is_anybody_busy(const struct quorum_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        if (store->nodes[i].doing.task != TASK_NONE && store->nodes[i].store->sent)
            return true;
    }
    return false;
}

/* Who does not wait is likely to end when it hears of it: what it may have got is given back before. */
static void not_acquired(struct quorum_store *store, struct answer *answer)
{
    struct moment next = moment_plus(now_of(store), RETRY_MOST_NS);
    int64_t half = elapsed(store) / 2;
    struct moment latest =
        moment_plus(now_of(store), LEAVING_NS + (half < HURRY_NS ? half : HURRY_NS));
    bool again = is_contested(store, answer) && !store->matter.lock.queue &&
                 ++store->tries < TRIES && !moment_reached(store->until, next);

    give_up(store);
    if (again) {
        store->round++;
        store->stage = STAGE_RETRYING;
        rest(store, &store->timer, RETRY_LEAST_NS, RETRY_MOST_NS);
        return;
    }
    if (!store->matter.lock.queue && is_anybody_busy(store)) {
        store->round++;
        store->stage = STAGE_LEAVING;
        loop_arm(store->loop, &store->timer, moment_min(store->until, latest));
        return;
    }
    tell_failure(store);
}

static void acquired(struct quorum_store *store, struct answer *answer)
{
    store->hold = HOLD_OURS;
    store->lapse = lease_end(store->begun, store->matter.lock.lease);
    complete(store, answer);
}

static void finish(struct quorum_store *store, enum quorum_state state)
{
    struct answer *answer = &store->answer;
    size_t approvals = quorum_approvals(&store->votes);
    bool carried = state == QUORUM_CARRIED;

    quorum_answer(&store->votes, state, answer);
    if (store->task == TASK_ACQUIRE) {
        if (carried)
            acquired(store, answer);
        else
            not_acquired(store, answer);
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
    complete(store, answer);
}

/* -- while it goes on ------------------------------------------------------------------------ */

/* All grants are there; now all of them get the highest fence. Those that have it already agree. */
static void settle(struct quorum_store *store)
{
    struct quorum_matter *matter = &store->matter;
    struct answer highest;

    quorum_answer(&store->votes, QUORUM_CARRIED, &highest);
    for (size_t key = 0; key < matter->lock.key_count; key++)
        matter->fences[key] = highest.grants[key].fence;
    matter->lock.fences = matter->fences;
    store->settling = true;
    store->stage = STAGE_VOTING;
    loop_arm(store->loop, &store->timer,
             moment_min(store->until, moment_plus(now_of(store), AFTERMATH_NS)));
    for (size_t i = 0; i < store->count; i++) {
        if (store->votes.ballots[i].vote != VOTE_YES ||
            quorum_matter_is_settled(matter, &store->votes.ballots[i].answer))
            continue;
        cast(store, &store->nodes[i], VOTE_NONE, NULL);
        order(store, &store->nodes[i], TASK_RENEW);
    }
}

/* Waits for so long at most, and no longer than it was to wait already. */
static void close_in(struct quorum_store *store, int64_t ns)
{
    struct moment due = moment_plus(now_of(store), ns);

    store->stage = STAGE_CLOSING;
    loop_arm(store->loop, &store->timer, moment_min(store->timer.due, due));
}

/* How long to wait for those who have a say in what has been decided without them. */
static int64_t hurry(const struct quorum_store *store)
{
    int64_t since = elapsed(store);
    return since > HURRY_NS ? since : HURRY_NS;
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
        return *node->store->node ? 0 : elapsed(store) / 4;
    /* Who did not acquire it has no more to do, and ends: what did not go out by then is not done. */
    if (store->hold == HOLD_FOREIGN)
        return elapsed(store);
    if (store->task != TASK_RELEASE)
        return 0;
    /* What it was asked before has to be answered, or the release does not go out; and that may have to go out
     * twice, to a server that does not know the script. */
    if (releasing ? node->prompt && !sent : sent)
        return hurry(store);
    return node->prompt ? elapsed(store) : 0;
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
    enum quorum_state state = quorum_state(&store->votes);
    int64_t patience = 0;

    if (state == QUORUM_CARRIED && store->task == TASK_ACQUIRE && !store->settling) {
        settle(store);
        state = quorum_state(&store->votes);
    }
    if (state == QUORUM_CARRIED)
        patience = patience_with_all(store);
    else if (state == QUORUM_OPEN && store->votes.rule == QUORUM_TAKE && !store->settling &&
             quorum_is_heard(&store->votes))
        patience = hurry(store);
    if (state != QUORUM_OPEN && patience == 0)
        finish(store, state);
    else if (patience > 0)
        close_in(store, patience);
}

void quorum_round_timer(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    switch (store->stage) {
    case STAGE_TOLD: complete(store, &store->answer); break;
    case STAGE_RETRYING: quorum_round_acquire(store); break;
    case STAGE_LEAVING: tell_failure(store); break;
    case STAGE_VOTING:
    case STAGE_CLOSING:
        quorum_close(&store->votes);
        finish(store, quorum_state(&store->votes));
        break;
    }
}

/* -- what is heard --------------------------------------------------------------------------- */

/* What an answer asks for that nobody waits for any more. */
static void mend(struct quorum_store *store, struct quorum_node *node,
                 const struct quorum_order *done, const struct answer *answer)
{
    bool acquired = done->task == TASK_ACQUIRE && answer->verdict == VERDICT_GRANTED;

    if (store->hold == HOLD_OVER && acquired)
        order_aside(store, node, TASK_RELEASE);
    else if (store->hold == HOLD_OURS && acquired &&
             !quorum_matter_is_settled(&store->matter, answer))
        order_aside(store, node, TASK_RENEW);
    else if (done->task == TASK_RENEW && quorum_ruling_is_missing(store, node, answer))
        order_aside(store, node, TASK_ACQUIRE);
}

void quorum_round_heard(void *arg, struct quorum_node *node, const struct quorum_order *done,
                        const struct answer *answer)
{
    struct quorum_store *store = arg;
    bool counts = store->task != TASK_NONE && store->stage <= STAGE_CLOSING;

    if (!counts || done->round != store->round) {
        if (node->doing.task == TASK_NONE)
            mend(store, node, done, answer);
        if (store->task != TASK_NONE && store->stage == STAGE_LEAVING && !is_anybody_busy(store))
            tell_failure(store);
        return;
    }
    if (quorum_ruling_is_fault(store, node, answer, &store->answer)) {
        if (store->task == TASK_ACQUIRE)
            give_up(store);
        complete(store, &store->answer);
        return;
    }
    struct quorum_ruling ruling = quorum_ruling(store, node, done, answer);
    if (ruling.then != TASK_NONE)
        order(store, node, ruling.then);
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
    store->begun = now_of(store);
    quorum_begin(&store->votes, rule, store->count, store->matter.lock.lease / NS_PER_MS);
    loop_arm(store->loop, &store->timer, store->until);
}

void quorum_round_order_all(struct quorum_store *store, enum quorum_task task)
{
    for (size_t i = 0; i < store->count; i++)
        order(store, &store->nodes[i], task);
}

/* One that all nodes can take, if clocks agree well: then it need not be settled afterwards. */
static uint64_t propose_fence(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)((t.tv_sec * NS_PER_SEC + t.tv_nsec + PROPOSAL_NS) / 1000);
}

void quorum_round_acquire(struct quorum_store *store)
{
    quorum_round_begin(store, QUORUM_TAKE);
    store->hold = HOLD_SOUGHT;
    store->matter.lock.fences = NULL;
    store->matter.lock.proposal = propose_fence();
    quorum_round_order_all(store, TASK_ACQUIRE);
}
