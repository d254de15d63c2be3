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
/* For nodes not heard of yet to turn out to be a server that is there twice. */
#define INTRODUCTION_NS (1 * NS_PER_MS)
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
                 bool fresh, const struct answer *answer)
{
    quorum_cast(&store->votes, (size_t)(node - store->nodes), vote, fresh, answer);
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
    store->tenure = TENURE_ENDED;
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

static void not_acquired(struct quorum_store *store, struct answer *answer)
{
    struct moment latest = moment_plus(now_of(store), RETRY_MOST_NS);
    bool again = is_contested(store, answer) && !store->matter.lock.queue &&
                 ++store->tries < TRIES && !moment_reached(store->until, latest);

    give_up(store);
    if (again) {
        store->round++;
        store->stage = STAGE_RETRYING;
        rest(store, &store->timer, RETRY_LEAST_NS, RETRY_MOST_NS);
        return;
    }
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

static void acquired(struct quorum_store *store, struct answer *answer)
{
    store->tenure = TENURE_HELD;
    store->introduced = true;
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
    if (store->task == TASK_RENEW && carried && store->tenure == TENURE_HELD)
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
        cast(store, &store->nodes[i], VOTE_NONE, false, NULL);
        order(store, &store->nodes[i], TASK_RENEW);
    }
}

static void close_in(struct quorum_store *store, int64_t ns)
{
    store->stage = STAGE_CLOSING;
    loop_arm(store->loop, &store->timer, moment_min(store->until, moment_plus(now_of(store), ns)));
}

/* A majority has decided it: for how long to wait for others nevertheless. */
static int64_t courtesy(struct quorum_store *store)
{
    size_t missing = store->count - quorum_approvals(&store->votes);
    bool prompt = false, stranger = false;
    int64_t since = elapsed(store);

    for (size_t i = 0; i < store->count; i++) {
        bool due = store->votes.ballots[i].vote == VOTE_NONE;
        prompt |= due && store->nodes[i].prompt;
        stranger |= due && !store->nodes[i].id[0];
    }
    switch (store->task) {
    case TASK_SURVEY: return quorum_views_are_clear(&store->views, missing) ? 0 : HURRY_NS + since;
    case TASK_RELEASE: return prompt ? HURRY_NS : 0; /* it is soon done there, too */
    case TASK_ACQUIRE:
        /* One that remembers more would not let those count who remember little. */
        if (quorum_is_young(&store->votes) && (prompt || stranger))
            return prompt ? HURRY_NS : INTRODUCTION_NS + since / 4;
        /* A stranger may turn out to be one that is there already. */
        return stranger && !store->introduced ? INTRODUCTION_NS / 2 : 0;
    default: return 0;
    }
}

static void decide(struct quorum_store *store)
{
    enum quorum_state state = quorum_state(&store->votes);
    int64_t pause;

    if (state == QUORUM_CARRIED && store->task == TASK_ACQUIRE && !store->settling) {
        settle(store);
        state = quorum_state(&store->votes);
    }
    if (state == QUORUM_OPEN) {
        bool hurry = store->votes.rule == QUORUM_TAKE && quorum_is_heard(&store->votes);
        if (hurry && !store->settling && store->stage == STAGE_VOTING)
            close_in(store, elapsed(store) > HURRY_NS ? elapsed(store) : HURRY_NS);
    } else if (state != QUORUM_CARRIED || (pause = courtesy(store)) == 0) {
        finish(store, state);
    } else if (store->stage == STAGE_VOTING) {
        close_in(store, pause);
    }
}

void quorum_round_timer(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    switch (store->stage) {
    case STAGE_TOLD: complete(store, &store->answer); break;
    case STAGE_RETRYING: quorum_round_acquire(store); break;
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
    bool missing = done->task == TASK_RENEW && answer->cause == CAUSE_NOT_HOLDER;

    if (store->tenure == TENURE_ENDED && acquired)
        order_aside(store, node, TASK_RELEASE);
    else if (store->tenure == TENURE_HELD && acquired &&
             !quorum_matter_is_settled(&store->matter, answer))
        order_aside(store, node, TASK_RENEW);
    else if (store->tenure == TENURE_HELD && missing && !quorum_node_was_evicted(node, answer))
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
        cast(store, node, ruling.vote, ruling.fresh, answer);
    decide(store);
}

/* -- beginning ------------------------------------------------------------------------------- */

void quorum_round_prepare(struct quorum_store *store, enum quorum_task task, struct moment until,
                          store_done *done, void *arg)
{
    store->task = task;
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    store->tries = 0;
    loop_disarm(store->loop, &store->rest);
}

void quorum_round_tell(struct quorum_store *store, const struct answer *answer)
{
    store->answer = *answer;
    store->stage = STAGE_TOLD;
    loop_arm(store->loop, &store->timer, now_of(store));
}

static void begin(struct quorum_store *store, enum quorum_rule rule)
{
    store->round++;
    store->stage = STAGE_VOTING;
    store->settling = false;
    store->begun = now_of(store);
    quorum_begin(&store->votes, rule, store->count, store->matter.lock.lease / NS_PER_MS);
    loop_arm(store->loop, &store->timer, store->until);
}

static void order_all(struct quorum_store *store, enum quorum_task task)
{
    for (size_t i = 0; i < store->count; i++)
        order(store, &store->nodes[i], task);
}

void quorum_round_acquire(struct quorum_store *store)
{
    begin(store, QUORUM_TAKE);
    store->tenure = TENURE_SEEKING;
    store->matter.lock.fences = NULL;
    order_all(store, TASK_ACQUIRE);
}

void quorum_round_renew(struct quorum_store *store)
{
    begin(store, QUORUM_KEEP);
    for (size_t i = 0; i < store->count; i++) {
        bool missing = store->tenure == TENURE_HELD && !store->nodes[i].held;
        order(store, &store->nodes[i], missing ? TASK_ACQUIRE : TASK_RENEW);
    }
}

void quorum_round_release(struct quorum_store *store, bool bar)
{
    begin(store, QUORUM_FREE);
    for (size_t i = 0; i < store->count; i++) {
        struct quorum_node *node = &store->nodes[i];
        struct quorum_order it = {.task = TASK_RELEASE,
                                  .round = store->round,
                                  .until = store->until,
                                  .last = !store->matter.lock.returns,
                                  .bar = (bar || node->unsure) && !store->matter.lock.returns,
                                  .at_least = store->matter.lock.at_least};
        if (store->tenure == TENURE_NONE || quorum_node_may_hold(node))
            quorum_node_order(node, it);
        else
            cast(store, node, VOTE_VOID, false, NULL);
    }
    if (store->tenure != TENURE_NONE)
        store->tenure = TENURE_ENDED;
    if (quorum_state(&store->votes) != QUORUM_OPEN) /* nobody is to be asked */
        loop_arm(store->loop, &store->timer, store->begun);
}

void quorum_round_force(struct quorum_store *store)
{
    begin(store, QUORUM_FREE);
    order_all(store, TASK_FORCE);
}

void quorum_round_survey(struct quorum_store *store)
{
    begin(store, QUORUM_READ);
    quorum_views_begin(&store->views, store->count);
    order_all(store, TASK_SURVEY);
}
