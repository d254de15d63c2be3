/* Acquiring: the tries of a quorum. */
#include "dice.h"
#include "lease.h"
#include "quorum_state.h"

/* Between two tries of one who waits. */
#define REST_LEAST_NS (50 * NS_PER_MS)
#define REST_MOST_NS  (500 * NS_PER_MS)
/* Who does not wait tries again where nobody has it: several got in each other's way. */
#define TRIES          6
#define RETRY_LEAST_NS (10 * NS_PER_MS)
#define RETRY_MOST_NS  (60 * NS_PER_MS)
/* For what a try has got to be given back; besides, half as long again as the try took. */
#define LEAVING_NS (5 * NS_PER_MS)
/* How far ahead of our clock: for the way there, and for clocks that differ. */
#define PROPOSAL_NS (50 * NS_PER_MS)

/* One that all nodes can take, if clocks agree well: then it need not be settled afterwards. */
static uint64_t propose_fence(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)((t.tv_sec * NS_PER_SEC + t.tv_nsec + PROPOSAL_NS) / 1000);
}

void quorum_claim_start(struct quorum_store *store)
{
    quorum_round_begin(store, QUORUM_TAKE);
    store->hold = HOLD_SOUGHT;
    store->matter.lock.fences = NULL;
    store->matter.lock.proposal = propose_fence();
    quorum_round_order_all(store, TASK_ACQUIRE);
}

void quorum_claim_settle(struct quorum_store *store)
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
             moment_min(store->until, moment_plus(quorum_now(store), QUORUM_AFTERMATH_NS)));
    for (size_t i = 0; i < store->count; i++) {
        if (store->votes.ballots[i].vote != VOTE_YES ||
            quorum_matter_is_settled(matter, &store->votes.ballots[i].answer))
            continue;
        quorum_cast(&store->votes, i, VOTE_NONE, NULL);
        quorum_round_order(store, &store->nodes[i], TASK_RENEW);
    }
}

/* -- the end --------------------------------------------------------------------------------- */

static void rest(struct quorum_store *store, struct loop_timer *timer, int64_t least, int64_t most)
{
    loop_arm(store->loop, timer, moment_plus(quorum_now(store), dice_between(least, most)));
}

/* Gives back what a try may have got, also where it was not answered. The owner is not barred from coming again. */
static void give_up(struct quorum_store *store)
{
    store->hold = HOLD_OVER;
    for (size_t i = 0; i < store->count; i++) {
        if (quorum_node_may_hold(&store->nodes[i]))
            quorum_round_order_aside(store, &store->nodes[i], TASK_RELEASE);
    }
}

/* Refused, but nobody has it: others tried at the same time. */
static bool is_contested(const struct quorum_store *store)
{
    const struct answer *answer = &store->answer;

    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD &&
           quorum_rivals(&store->votes) < quorum_majority(store->count);
}

void quorum_claim_fail(struct quorum_store *store)
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
    quorum_round_complete(store);
}

static bool may_retry(struct quorum_store *store)
{
    struct moment next = moment_plus(quorum_now(store), RETRY_MOST_NS);

    return is_contested(store) && !store->matter.lock.queue && ++store->tries < TRIES &&
           !moment_reached(store->until, next);
}

/* For how long what the try may have got is given back before it is told: who does not wait is likely to end
 * when it hears of it, and whoever hears that there is no use in waiting. */
static int64_t time_to_leave(const struct quorum_store *store)
{
    int64_t half = quorum_elapsed(store) / 2;

    if (store->answer.cause == CAUSE_MISFIT)
        return QUORUM_HURRY_NS;
    if (store->matter.lock.queue)
        return 0;
    return LEAVING_NS + (half < QUORUM_HURRY_NS ? half : QUORUM_HURRY_NS);
}

static void not_acquired(struct quorum_store *store)
{
    struct moment latest = moment_plus(quorum_now(store), time_to_leave(store));

    give_up(store);
    store->round++;
    if (may_retry(store)) {
        store->stage = STAGE_RETRYING;
        rest(store, &store->timer, RETRY_LEAST_NS, RETRY_MOST_NS);
    } else if (quorum_is_busy(store) && !moment_reached(latest, quorum_now(store))) {
        store->stage = STAGE_LEAVING;
        loop_arm(store->loop, &store->timer, moment_min(store->until, latest));
    } else {
        quorum_claim_fail(store);
    }
}

void quorum_claim_end(struct quorum_store *store, enum quorum_outcome outcome)
{
    if (outcome != QUORUM_CARRIED) {
        not_acquired(store);
        return;
    }
    store->hold = HOLD_OURS;
    store->lapse = lease_end(store->begun, store->matter.lock.lease);
    quorum_round_complete(store);
}
