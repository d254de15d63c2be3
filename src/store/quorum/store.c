/* A quorum of stores as one store. An operation is one round of votes or more (round.h). Nodes go
 * on with their orders when it is over. */
#include "store/quorum/store.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/jitter.h"
#include "base/mem.h"
#include "lock/lease.h"
#include "net/loop.h"
#include "store/quorum/node.h"
#include "store/quorum/quorum.h"
#include "store/quorum/round.h"
#include "store/quorum/views.h"

/* How long a node has for an order without a vote. */
#define AFTERMATH_NS (2 * NS_PER_SEC)
/* Between two tries of a waiter. */
#define PAUSE_LEAST_NS (50 * NS_PER_MS)
#define PAUSE_MOST_NS  (500 * NS_PER_MS)
/* Tries of an owner that does not wait, where several tried at once and none got it. */
#define TRIES          6
#define RETRY_LEAST_NS (10 * NS_PER_MS)
#define RETRY_MOST_NS  (60 * NS_PER_MS)
/* The time that nodes have to release what a try got; besides, half as long again as it took. */
#define LEAVING_NS (5 * NS_PER_MS)
/* How far ahead of our clock the proposed fence is: for the way to the nodes, and for clocks that
 * differ. */
#define PROPOSAL_NS (50 * NS_PER_MS)

/* This process's relation to the lock of its latest request. */
enum quorum_hold {
    HOLD_FOREIGN, /* another process may have acquired it */
    HOLD_SOUGHT,  /* an acquisition is under way */
    HOLD_OURS,
    HOLD_RETURNED, /* ours until its release: whether a majority had it until then is asked */
    HOLD_OVER,     /* not acquired: no entry must remain */
};

struct quorum_store {
    struct store base;
    struct loop *loop;
    struct quorum_node nodes[QUORUM_NODES_MAX];
    size_t count;
    struct quorum_requests requests;
    struct arena lock_words, force_words, survey_words; /* that these point to */
    char owner[OWNER_SIZE]; /* of the lock in the requests, which is held or was */
    enum quorum_hold hold;
    struct moment ends;         /* held: when the lease ends */
    struct loop_timer pause;    /* until the next try of a waiter */
    struct kept_answer refusal; /* of the latest try */

    /* The operation under way, base.operation. */
    enum store_verb task; /* NONE: there is none */
    enum quorum_stage {
        STAGE_VOTING,
        STAGE_RETRYING, /* a try failed, and the next follows */
        STAGE_LEAVING,  /* it failed for good; nodes release it before that is told */
        STAGE_TOLD,     /* the answer was known before: it is given when the loop turns */
    } stage;
    struct quorum_round round; /* VOTING */
    struct loop_timer timer;   /* the end of the other stages */
    bool settling;             /* acquired, if a majority takes the fence */
    unsigned tries;
    struct moment leave;  /* LEAVING: its end */
    struct answer answer; /* points into round.votes, to the refusal or to: */
    struct lock_grant grants[LOCK_KEYS_MAX];
    struct lock_views views; /* of all nodes */
};

/* Returns the time that the loop shows. */
static struct moment now_of(const struct quorum_store *store)
{
    return loop_now(store->loop);
}

/* -- what an answer means ---------------------------------------------------------------------- */

/* Returns the vote that an answer is, only by its verdict. */
static enum vote vote_of(const struct answer *answer)
{
    switch (answer->verdict) {
    case VERDICT_GRANTED: return VOTE_YES;
    case VERDICT_REFUSED: return VOTE_NO;
    case VERDICT_UNKNOWN: break;
    }
    return VOTE_UNKNOWN;
}

/* Whether nodes that do not have the lock may be given it: as long as a majority holds it. After
 * that it may have been another owner's, and has to be acquired. */
static bool may_fill(const struct quorum_store *store)
{
    return store->hold == HOLD_OURS && !moment_reached(store->ends, now_of(store));
}

/* Whether the node says that the owner has no entry there. */
static bool is_absent(const struct answer *answer)
{
    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_NOT_HOLDER;
}

/* Whether this answer to a renewal calls for giving the node the lock: the node has forgotten it or
 * never had it, and it was not taken away there. */
static bool is_missing(const struct quorum_store *store, const struct quorum_reply *reply)
{
    return is_absent(reply->answer) && may_fill(store) && !reply->evicted;
}

/* Returns the order that mends the node's entry after its reply; VERB_NONE: there is nothing to
 * mend. settles: whether a node that has acquired the lock is to get the fence that was settled
 * on. */
static enum store_verb mending_order(const struct quorum_store *store,
                                     const struct quorum_reply *reply, bool settles)
{
    enum store_verb task = reply->order->task;
    bool acquired = task == VERB_ACQUIRE && reply->answer->verdict == VERDICT_GRANTED;

    if (settles && acquired && !quorum_is_settled(&store->requests, reply->answer->granted.grants))
        return VERB_RENEW;
    return task == VERB_RENEW && is_missing(store, reply) ? VERB_ACQUIRE : VERB_NONE;
}

/* Returns the vote that a reply to a release is. */
static enum vote judge_releasing(const struct quorum_store *store, const struct quorum_node *node,
                                 const struct quorum_reply *reply)
{
    if (!is_absent(reply->answer) || reply->evicted)
        return vote_of(reply->answer);
    if (node->released) /* by an earlier release, which was not answered */
        return VOTE_YES;
    /* Another process of the owner had acquired it at a majority, so an entry that is missing is a
     * vote against. This process knows which nodes had it, and counts it neither way. */
    return store->hold == HOLD_FOREIGN ? VOTE_NO : VOTE_VOID;
}

/* Returns the vote that a node's reply is, for or against the operation under way. A node whose
 * vote is VOID is heard, and has no say. */
static enum vote judge_vote(const struct quorum_store *store, const struct quorum_node *node,
                            const struct quorum_reply *reply)
{
    const struct answer *answer = reply->answer;
    bool is_free = answer->verdict == VERDICT_REFUSED && !answer->refused.holder;

    switch (store->task) {
    case VERB_RENEW:
        /* A node that should get the lock, and refuses or is too late, is neither for nor
         * against. */
        return reply->order->task == VERB_ACQUIRE && answer->verdict != VERDICT_UNKNOWN &&
                       (answer->verdict == VERDICT_REFUSED || !may_fill(store))
                   ? VOTE_VOID
                   : vote_of(answer);
    case VERB_RELEASE: return judge_releasing(store, node, reply);
    case VERB_FORCE: return is_free ? VOTE_VOID : vote_of(answer);
    default: return vote_of(answer);
    }
}

/* -- nodes that are not a quorum --------------------------------------------------------------- */

/* Returns an earlier node of the list that is the same server; NULL: there is none. */
static const struct quorum_node *twin_of(const struct quorum_store *store,
                                         const struct quorum_node *node)
{
    const char *id = node->member.report->server;

    for (const struct quorum_node *other = store->nodes; *id && other < node; other++) {
        if (strcmp(id, other->member.report->server) == 0)
            return other;
    }
    return NULL;
}

/* Looks for a server that is two nodes. Returns whether there is one; then *fault is a refusal that
 * names them. */
static bool find_twins(const struct quorum_store *store, struct answer *fault)
{
    *fault = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_MISFIT};
    for (size_t i = 0; i < store->count; i++) {
        const struct quorum_node *twin = twin_of(store, &store->nodes[i]);
        if (!twin)
            continue;
        snprintf(fault->text, sizeof fault->text,
                 "the same node twice in a quorum: %s and %s are one server", twin->name,
                 store->nodes[i].name);
        return true;
    }
    return false;
}

/* Whether a node's answer ("heard") ends the operation, as it shows that these nodes are not a
 * quorum: one server is two of them, or one is a replica. Then *fault is a refusal that says so. */
static bool is_no_quorum(const struct quorum_store *store, const struct answer *heard,
                         struct answer *fault)
{
    bool held = store->task == VERB_RENEW || store->task == VERB_RELEASE;
    bool replica = heard->verdict == VERDICT_UNKNOWN && heard->cause == CAUSE_MISFIT;

    if (held && store->hold != HOLD_FOREIGN)
        return false; /* a held lock is not lost for it */
    if (find_twins(store, fault))
        return true;
    if (replica) {
        memcpy(fault->text, heard->text, sizeof fault->text);
        answer_prepend(fault, "not fit for a quorum: ");
    }
    return replica;
}

/* -- beginning and ending ---------------------------------------------------------------------- */

/* Begins to count votes by that rule, until the operation ends. */
static void begin_round(struct quorum_store *store, enum quorum_rule rule)
{
    int64_t lease = store->requests.acquire.lease;
    struct moment until = store->base.operation.until;

    /* All nodes of a majority must have granted the lock within one lease. A node may give it to
     * others when the lease is over that it has granted: another holder could come between, whose
     * fence is higher than the one settled on. */
    if (rule == QUORUM_TAKE)
        until = moment_min(until, lease_end(now_of(store), lease));
    store->stage = STAGE_VOTING;
    store->settling = false;
    quorum_round_begin(&store->round, rule, lease, until);
}

/* Gives a node an order whose answer is not a vote. */
static void order_without_vote(struct quorum_store *store, struct quorum_node *node,
                               enum store_verb task)
{
    struct moment until = moment_plus(now_of(store), AFTERMATH_NS);

    quorum_node_order(node, (struct quorum_order){.task = task, .until = until});
}

/* Ends the operation with store->answer. */
static void complete_task(struct quorum_store *store)
{
    struct kept_answer copy; /* "done" may begin the next operation */

    answer_keep(&copy, &store->answer);
    store->task = VERB_NONE;
    quorum_round_end(&store->round);
    loop_disarm(store->loop, &store->timer);
    store->base.operation.done(store->base.operation.arg, &copy.answer);
}

/* -- acquiring --------------------------------------------------------------------------------- */

/* Asks all nodes for the lock, once. */
static void start_try(struct quorum_store *store)
{
    begin_round(store, QUORUM_TAKE);
    store->hold = HOLD_SOUGHT;
    /* A fence, the clock in us, that all nodes can take if clocks agree well: then they need not be
     * asked again to settle on one. */
    store->requests.terms =
        (struct member_terms){.proposal = (uint64_t)((clock_wall() + PROPOSAL_NS) / 1000)};
    quorum_round_ask_all(&store->round, VERB_ACQUIRE);
}

/* Notes the fence of each key that nodes get with their next request. */
static void set_fences(struct quorum_requests *requests, const struct lock_grant *grants)
{
    for (size_t key = 0; key < requests->acquire.key_count; key++)
        requests->fences[key] = grants[key].fence;
    requests->terms.fences = requests->fences;
}

/* Settles on one fence, as a majority has granted the lock: all nodes that did are to have the
 * highest fence. Those that have it agree; the others are asked to renew with it, and their votes
 * are open again. */
static void settle_fence(struct quorum_store *store)
{
    struct quorum_round *round = &store->round;
    struct quorum_requests *requests = &store->requests;

    quorum_answer(&round->votes, QUORUM_CARRIED, &store->answer, store->grants);
    set_fences(requests, store->grants);
    store->settling = true;
    quorum_round_close_at(round,
                          moment_min(round->until, moment_plus(now_of(store), AFTERMATH_NS)));
    for (size_t i = 0; i < store->count; i++) {
        const struct quorum_ballot *ballot = &round->votes.ballots[i];
        if (ballot->vote != VOTE_YES || quorum_is_settled(requests, ballot->kept.grants))
            continue;
        quorum_round_cast(round, &store->nodes[i], VOTE_NONE, NULL);
        quorum_round_ask(round, &store->nodes[i], (struct quorum_order){.task = VERB_RENEW});
    }
}

/* Arms the timer for some time between "least" and "most" ns, at random: those that have tried at
 * the same time must not try again at the same time. */
static void pause_between(struct quorum_store *store, struct loop_timer *timer, int64_t least,
                          int64_t most)
{
    loop_arm(store->loop, timer, moment_plus(now_of(store), jitter_between(least, most)));
}

/* Returns for how many ns nodes have to release what the try may have got, before its end is told.
 * A process that does not wait is likely to end then, and so is one that hears that there is no use
 * in waiting (MISFIT); a waiter stays, and need not be held up. */
static int64_t time_to_leave(const struct quorum_store *store)
{
    int64_t half = quorum_round_elapsed(&store->round) / 2;

    if (store->answer.cause == CAUSE_MISFIT)
        return QUORUM_EXTRA_NS;
    if (store->requests.acquire.queue)
        return 0;
    return LEAVING_NS + (half < QUORUM_EXTRA_NS ? half : QUORUM_EXTRA_NS);
}

/* Reports that a try failed as soon as nodes have released it, or have had the time for that
 * (store->leave); until then it waits, and is called again by each reply. */
static void leave_try(struct quorum_store *store)
{
    bool busy = false; /* a node does something that has gone out */

    for (size_t i = 0; i < store->count; i++) {
        const struct quorum_node *node = &store->nodes[i];
        busy |= node->doing.task != VERB_NONE && node->member.report->sent;
    }
    if (!busy || moment_reached(store->leave, now_of(store))) {
        struct answer *answer = &store->answer;
        if (answer->verdict == VERDICT_UNKNOWN) {
            answer->maybe_done = false; /* as far as nodes have told by now */
            for (size_t i = 0; i < store->count; i++)
                answer->maybe_done |= store->nodes[i].unsure;
        } else {
            /* After a refusal, a waiter is called for its next try. */
            pause_between(store, &store->pause, PAUSE_LEAST_NS, PAUSE_MOST_NS);
        }
        answer_keep(&store->refusal, answer);
        complete_task(store);
    } else {
        store->stage = STAGE_LEAVING;
        loop_arm(store->loop, &store->timer, store->leave);
    }
}

/* Ends a failed try, whose answer is store->answer: releases what it may have got, and tries again
 * or reports the answer. */
static void end_try(struct quorum_store *store)
{
    struct moment leave = moment_plus(now_of(store), time_to_leave(store));
    struct moment next = moment_plus(now_of(store), RETRY_MOST_NS);

    /* An owner that held the lock before and is not answered may hold it still, and returns with
     * another request: nothing is released. */
    bool keeps = store->requests.acquire.had && store->answer.verdict == VERDICT_UNKNOWN;
    store->leave = moment_min(store->base.operation.until, leave);
    store->hold = keeps ? HOLD_FOREIGN : HOLD_OVER;
    /* Nodes that did not answer are asked to release, too. */
    for (size_t i = 0; i < store->count; i++) {
        if (!keeps && quorum_node_may_hold(&store->nodes[i]))
            order_without_vote(store, &store->nodes[i], VERB_RELEASE);
    }
    quorum_round_end(&store->round);
    /* Refused without a holder: others tried at the same time. */
    const struct answer *answer = &store->answer;
    if (answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD &&
        quorum_rivals(&store->round.votes) < quorum_majority(store->count) &&
        !store->requests.acquire.queue && ++store->tries < TRIES &&
        !moment_reached(store->base.operation.until, next)) {
        store->stage = STAGE_RETRYING;
        pause_between(store, &store->timer, RETRY_LEAST_NS, RETRY_MOST_NS);
    } else {
        leave_try(store);
    }
}

/* The time of a stage other than VOTING is over (store->timer). */
static void end_stage(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    switch (store->stage) {
    case STAGE_VOTING: break;
    case STAGE_RETRYING: start_try(store); break;
    case STAGE_LEAVING: leave_try(store); break;
    case STAGE_TOLD: complete_task(store); break;
    }
}

/* -- deciding ---------------------------------------------------------------------------------- */

/* Ends the operation with the outcome of its round; or only the try, if it did not acquire. */
static void finish_round(struct quorum_store *store, enum quorum_outcome outcome)
{
    const struct quorum *votes = &store->round.votes;
    struct answer *answer = &store->answer;
    size_t approvals = quorum_approvals(votes);
    bool carried = outcome == QUORUM_CARRIED;

    quorum_answer(votes, outcome, answer, store->grants);
    if (store->task == VERB_ACQUIRE && !carried) {
        end_try(store);
        return;
    }
    if (carried &&
        (store->task == VERB_ACQUIRE || (store->task == VERB_RENEW && store->hold == HOLD_OURS))) {
        /* A majority has had the lock since the round began. A node from which it has vanished may
         * get it again; but not one from which someone has taken it away (revoked), who may be
         * about to do that at others. */
        store->hold = HOLD_OURS;
        store->ends = lease_end(store->round.begun, store->requests.acquire.lease);
        for (size_t i = 0; i < store->count; i++)
            store->nodes[i].evicted = store->nodes[i].revoked;
    }
    /* Another owner asks for the lock on a majority of the nodes: we hear of it from one that is
     * among them, if those that tell us are a majority as well. */
    size_t listening = 0;
    for (size_t i = 0; i < store->count; i++)
        listening += store->nodes[i].held && !store->nodes[i].not_listening;
    answer->granted.not_listening = carried && listening < quorum_majority(store->count);
    /* The lock was free at a majority, and no node had anything to take away. */
    if (store->task == VERB_FORCE && carried && approvals == 0) {
        answer->verdict = VERDICT_REFUSED;
        answer->cause = CAUSE_CHANGED;
    }
    if (store->task == VERB_SURVEY && carried)
        quorum_views_report(&store->views, store->count, store->count - approvals,
                            store->base.operation.survey);
    complete_task(store);
}

/* The time of a round is over: nodes that are silent have failed, and the votes decide. */
static void close_votes(struct loop_timer *timer)
{
    struct quorum_store *store = timer->owner;

    quorum_close(&store->round.votes);
    finish_round(store, quorum_outcome(&store->round.votes));
}

/* Returns for how many ns to wait for this node after most nodes have released: an entry that stays
 * there would keep others out for a lease. */
static int64_t extra_time_to_release(const struct quorum_store *store,
                                     const struct quorum_node *node)
{
    const struct quorum_round *round = &store->round;
    bool sent = node->member.report->sent;
    bool connects = node->doing.task == VERB_RELEASE && !sent && (node->answered || node->unsure);
    bool is_behind = node->doing.task != VERB_RELEASE && sent; /* behind another order */

    /* The connection to a node that has our entry may not be up yet: nothing would release it. Half
     * of the time is left, so that the answer comes in time. */
    if (node->from_dead_agent)
        return moment_until(now_of(store), store->base.operation.until) / 2;
    /* The release is sent when the node has answered its order before, or has accepted the
     * connection; to a server that does not know the script it is sent a second time. */
    if (connects || is_behind)
        return quorum_round_extra_time(round);
    return node->answered ? quorum_round_elapsed(round) : 0;
}

/* Returns for how many ns to wait for this node although a majority has decided the vote. */
static int64_t extra_time(const struct quorum_store *store, const struct quorum_node *node)
{
    if (store->task == VERB_ACQUIRE) {
        const struct quorum_round *round = &store->round;
        const struct member_report *report = node->member.report;
        /* A node that remembers more would not let those count that remember little. */
        if (report->sent && quorum_is_young(&round->votes))
            return quorum_round_extra_time(round);
        /* A node that has not told yet which server it is may be another one's second name: it
         * gets a quarter more of the time that the round has taken, to tell. */
        return *report->server ? 0 : quorum_round_elapsed(round) / 4;
    }
    /* A process of neither the run nor its agents ends when it has the answer: a node is not asked
     * what was not sent by then. */
    if (store->hold == HOLD_FOREIGN && !node->from_dead_agent)
        return quorum_round_elapsed(&store->round);
    return store->task == VERB_RELEASE ? extra_time_to_release(store, node) : 0;
}

/* Returns for how many ns a round that is decided waits for nodes that have not answered: as long
 * as for the one that is worth most. A survey does not wait if they could not change what it
 * shows. */
static int64_t longest_extra_time(struct quorum_store *store)
{
    const struct quorum *votes = &store->round.votes;
    size_t missing = store->count - quorum_approvals(votes);
    int64_t longest = 0;

    if (store->task == VERB_SURVEY)
        return quorum_views_are_clear(&store->views, store->count, missing)
                   ? 0
                   : quorum_round_extra_time(&store->round);
    for (size_t i = 0; i < store->count; i++) {
        bool silent = votes->ballots[i].vote == VOTE_NONE;
        int64_t extra = silent ? extra_time(store, &store->nodes[i]) : 0;
        longest = extra > longest ? extra : longest;
    }
    return longest;
}

/* After each vote: ends the round if its outcome is known. A round that has succeeded, or may yet,
 * is left open a little longer for nodes that are slower than the majority. */
static void decide_round(struct quorum_store *store)
{
    const struct quorum *votes = &store->round.votes;
    enum quorum_outcome outcome = quorum_outcome(votes);
    int64_t extra = 0;

    if (outcome == QUORUM_CARRIED && store->task == VERB_ACQUIRE && !store->settling) {
        settle_fence(store);
        outcome = quorum_outcome(votes);
    }
    if (outcome == QUORUM_CARRIED)
        extra = longest_extra_time(store);
    else if (outcome == QUORUM_OPEN && votes->rule == QUORUM_TAKE && !store->settling &&
             quorum_is_heard(votes))
        extra = quorum_round_extra_time(&store->round);
    if (outcome != QUORUM_OPEN && extra == 0)
        finish_round(store, outcome);
    else if (extra > 0)
        quorum_round_close_in(&store->round, extra);
}

/* -- what nodes say ---------------------------------------------------------------------------- */

/* Takes the reply of a node. In this round it ends the operation, or has the node do something
 * else, or is a vote. */
static void on_node_reply(void *arg, struct quorum_node *node, const struct quorum_reply *reply)
{
    struct quorum_store *store = arg;

    /* A reply to an order of an earlier round has no vote, but may show what must be mended. */
    if (reply->order->round != store->round.number) {
        enum store_verb next = mending_order(store, reply, store->hold == HOLD_OURS);
        if (next != VERB_NONE && node->doing.task == VERB_NONE)
            order_without_vote(store, node, next);
        if (store->task != VERB_NONE && store->stage == STAGE_LEAVING)
            leave_try(store);
        return;
    }
    if (is_no_quorum(store, reply->answer, &store->answer)) {
        if (store->task == VERB_ACQUIRE)
            end_try(store);
        else
            complete_task(store);
        return;
    }
    enum store_verb next = mending_order(store, reply, store->settling);
    if (next != VERB_NONE)
        quorum_round_ask(&store->round, node, (struct quorum_order){.task = next});
    else
        quorum_round_cast(&store->round, node, judge_vote(store, node, reply), reply);
    decide_round(store);
}

/* -- the operations ---------------------------------------------------------------------------- */

static struct quorum_store *quorum_of(struct store *base)
{
    return MEM_CONTAINER(struct quorum_store, base, base);
}

/* Answers when the loop turns, without asking a node. */
static void answer_at_once(struct quorum_store *store, const struct answer *answer)
{
    store->answer = *answer;
    store->stage = STAGE_TOLD;
    loop_arm(store->loop, &store->timer, now_of(store));
}

/* Refuses the request, without asking any node, if two of the nodes are known to be one server.
 * Returns whether it does. */
static bool refuse_unfit(struct quorum_store *store)
{
    struct answer fault;

    if (!find_twins(store, &fault))
        return false;
    answer_at_once(store, &fault);
    return true;
}

/* Returns a copy of a word for requests that are made after the operation; the arena owns it. NULL
 * stays NULL. */
static const char *keep_word(struct arena *words, const char *word)
{
    return word ? arena_take_string(words, mem_strdup(word)) : NULL;
}

/* Returns copies of words, with a NULL behind the last; the arena owns all. */
static const char *const *keep_words(struct arena *words, const char *const *from, size_t count)
{
    size_t size = (count + 1) * sizeof *from;
    const char **copy = (const char **)(void *)arena_take(words, mem_zeroed(size), size);

    for (size_t i = 0; i < count; i++)
        copy[i] = keep_word(words, from[i]);
    return copy;
}

/* Copies the lock of a request, since nodes may be asked about it after the operation. With another
 * owner, what is known of the nodes' entries is forgotten. */
static void take_lock(struct quorum_store *store, const struct acquire_request *lock)
{
    struct quorum_requests *requests = &store->requests;
    struct acquire_request *acquire = &requests->acquire;

    if (strcmp(store->owner, lock->owner) != 0) {
        store->hold = HOLD_FOREIGN;
        requests->terms.fences = NULL;
        for (size_t i = 0; i < store->count; i++) {
            store->nodes[i].released = store->nodes[i].revoked = false;
            store->nodes[i].from_dead_agent = lock->from_dead_agent;
        }
    }
    requests->terms.proposal = 0;
    snprintf(store->owner, sizeof store->owner, "%s", lock->owner);
    arena_free(&store->lock_words);
    *acquire = *lock;
    acquire->keys = keep_words(&store->lock_words, lock->keys, lock->key_count);
    acquire->owner = keep_word(&store->lock_words, lock->owner);
    acquire->who = keep_word(&store->lock_words, lock->who);
    acquire->mirror = keep_word(&store->lock_words, lock->mirror);
    acquire->group = NULL; /* there is no queue */
    requests->renew = (struct renew_request){.lock = acquire};
    requests->release = (struct release_request){.lock = acquire};
}

/* Copies the request of a release, and its lock. */
static void take_release(struct quorum_store *store, const struct release_request *request)
{
    take_lock(store, request->lock);
    store->requests.release = *request;
    store->requests.release.lock = &store->requests.acquire;
}

/* Begins a try. pausing: this waiter was refused a moment ago, and would be refused again: if it
 * listens, it gets that answer, and its pause continues. */
static void start_acquire(struct quorum_store *store, const struct acquire_request *request,
                          bool pausing)
{
    struct moment next = store->pause.due;

    take_lock(store, request);
    if (refuse_unfit(store))
        return;
    if (pausing && request->listen) {
        answer_at_once(store, &store->refusal.answer);
        loop_arm(store->loop, &store->pause, next);
    } else {
        start_try(store);
    }
}

/* Renews at the nodes that hold the lock, and acquires it at those that lack it. */
static void start_renew(struct quorum_store *store, const struct renew_request *request)
{
    take_lock(store, request->lock);
    store->requests.renew.handed = request->handed;
    store->requests.renew.strict = request->strict;
    store->requests.renew.listen = request->listen;
    if (store->hold == HOLD_FOREIGN && request->grants) {
        /* A process that died had acquired the lock. As the nodes that have it are not known, all
         * are asked to renew; after a majority has, the others may be given it. */
        set_fences(&store->requests, request->grants);
        store->hold = HOLD_OURS;
        store->ends.ns = 0;
        for (size_t i = 0; i < store->count; i++)
            store->nodes[i].unsure = true;
    }
    if (store->hold != HOLD_FOREIGN || !refuse_unfit(store)) {
        begin_round(store, QUORUM_KEEP);
        for (size_t i = 0; i < store->count; i++) {
            struct quorum_node *node = &store->nodes[i];
            bool missing = !node->held && !node->evicted && may_fill(store);
            struct quorum_order order = {.task = missing ? VERB_ACQUIRE : VERB_RENEW};
            quorum_round_ask(&store->round, node, order);
        }
    }
}

/* Releases at all nodes that may have the lock, without asking the others. */
static void start_release(struct quorum_store *store, const struct release_request *request)
{
    take_release(store, request);
    if (store->hold != HOLD_FOREIGN || !refuse_unfit(store)) {
        /* A majority must have had a lock that was held, here or by another process that acquired
         * it; not the entries that a try has left. */
        bool in_time = store->requests.release.in_time;
        bool held = store->hold != HOLD_SOUGHT && store->hold != HOLD_OVER;
        /* An acquisition may still be under way to a node that has refused a later one, or that an
         * earlier process has asked. */
        bool all = store->hold == HOLD_FOREIGN || request->uncertain;
        begin_round(store, held ? QUORUM_RETURN : QUORUM_FREE);
        for (size_t i = 0; i < store->count; i++) {
            struct quorum_node *node = &store->nodes[i];
            /* bar: an acquisition that may still arrive must not succeed, as the owner makes no
             * other one. */
            struct quorum_order order = {.task = VERB_RELEASE,
                                         .last = !in_time,
                                         .bar = (request->uncertain || node->unsure) && !in_time,
                                         .at_least = store->requests.release.at_least};
            /* The vote of a node that has nothing to release. */
            enum vote vote = node->evicted ? VOTE_NO : node->released ? VOTE_YES : VOTE_VOID;
            if (all || quorum_node_may_hold(node))
                quorum_round_ask(&store->round, node, order);
            else
                quorum_round_cast(&store->round, node, vote, NULL);
        }
        if (store->hold != HOLD_FOREIGN)
            store->hold = held ? HOLD_RETURNED : HOLD_OVER;
        if (quorum_outcome(&store->round.votes) != QUORUM_OPEN) /* no node is asked */
            quorum_round_close_in(&store->round, 0);
    }
}

/* Releases at all nodes that may have the lock, over the connections that are up. Returns whether
 * that went out to all of them. */
static bool send_release_nowait(struct quorum_store *store)
{
    bool all_sent = true;

    for (size_t i = 0; i < store->count; i++) {
        if (quorum_node_may_hold(&store->nodes[i]))
            all_sent &= quorum_node_release_nowait(&store->nodes[i]);
    }
    return all_sent;
}

/* Ends the operation under way, if there is one; its callback "done" is not called. For a caller
 * that closes the store, or releases without waiting. */
static void stop_task(struct quorum_store *store)
{
    store->task = VERB_NONE;
    quorum_round_end(&store->round);
    loop_disarm(store->loop, &store->timer);
    loop_disarm(store->loop, &store->pause);
}

/* See store_release_nowait(). The operation under way is dropped: its entries are released as
 * well. */
static enum release_sent quorum_release_nowait(struct store *base,
                                               const struct release_request *request)
{
    struct quorum_store *store = quorum_of(base);

    stop_task(store);
    take_release(store, request);
    store->hold = HOLD_OVER;
    /* Not BLOCKED, even where a node is not reached that has an entry: if so many have one that
     * they keep others out, the acquisition was answered, and the keeper knows that it may be
     * held. */
    return send_release_nowait(store) ? RELEASE_SENT : RELEASE_UNSENT;
}

/* Copies the request to take a lock away, and has all nodes execute it. */
static void start_force(struct quorum_store *store, const struct force_request *request)
{
    struct force_request *force = &store->requests.force;
    struct arena *words = &store->force_words;

    arena_free(words);
    *force = *request;
    force->key = keep_word(words, request->key);
    force->by = keep_word(words, request->by);
    force->why = keep_word(words, request->why);
    force->owners = keep_words(words, request->owners, request->owner_count);
    force->mirror = keep_word(words, request->mirror);
    if (!refuse_unfit(store)) {
        bool asks = request->mirror && request->owner_count == 0; /* only who holds the mirror */
        begin_round(store, asks ? QUORUM_READ : QUORUM_FREE);
        quorum_round_ask_all(&store->round, VERB_FORCE);
    }
}

/* Keeps what a node shows of a lock, unless that belongs to an earlier survey. arg: the node. */
static void see_view(void *arg, const struct lock_view *view)
{
    struct quorum_node *node = arg;
    struct quorum_store *store = node->arg;

    if (store->task == VERB_SURVEY && node->doing.round == store->round.number)
        lock_views_add(&store->views, view);
}

/* Copies the request, and asks all nodes what they show. */
static void start_survey(struct quorum_store *store, const struct survey_request *request)
{
    arena_free(&store->survey_words);
    store->requests.survey = *request;
    store->requests.survey.patterns =
        keep_words(&store->survey_words, request->patterns, request->pattern_count);
    store->requests.survey.each = see_view;
    if (!refuse_unfit(store)) {
        begin_round(store, QUORUM_READ);
        lock_views_free(&store->views);
        quorum_round_ask_all(&store->round, VERB_SURVEY);
    }
}

/* Starts an operation (store_ops.start). It ends the pause of a waiter, which a new try may
 * continue. */
static void start_task(struct store *base, const struct operation *operation)
{
    struct quorum_store *store = quorum_of(base);
    bool pausing = store->pause.armed;

    store->task = operation->verb;
    store->tries = 0;
    loop_disarm(store->loop, &store->pause);
    switch (operation->verb) {
    case VERB_ACQUIRE: start_acquire(store, operation->acquire, pausing); break;
    case VERB_RENEW: start_renew(store, operation->renew); break;
    case VERB_RELEASE: start_release(store, operation->release); break;
    case VERB_FORCE: start_force(store, operation->force); break;
    case VERB_SURVEY: start_survey(store, operation->survey); break;
    default: break;
    }
}

/* Another owner asks for the lock, or the connection to a node broke, which may have lost its data:
 * tells a holder. A waiter has no entry there. */
static void node_poked(void *arg)
{
    struct quorum_store *store = arg;

    if (store->hold == HOLD_OURS)
        store_changed(&store->base);
}

/* Closes the store. Entries that have not been released yet are released over the connections that
 * are up. */
static void quorum_shut(struct store *base)
{
    struct quorum_store *store = quorum_of(base);

    /* An owner that held the lock before may hold it still, and returns. */
    bool keeps = store->hold == HOLD_SOUGHT && store->requests.acquire.had;
    stop_task(store);
    if (store->hold != HOLD_FOREIGN && store->hold != HOLD_OURS && !keeps)
        send_release_nowait(store);
    for (size_t i = 0; i < store->count; i++)
        store_close(store->nodes[i].member.store);
    lock_views_free(&store->views);
    arena_free(&store->lock_words);
    arena_free(&store->force_words);
    arena_free(&store->survey_words);
    free(store);
}

struct store *store_quorum_open(struct loop *loop, const struct store_node *nodes, size_t count)
{
    static const struct store_ops ops = {quorum_shut, start_task, quorum_release_nowait};
    static const struct store_events node_events = {.poked = node_poked};
    struct quorum_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->count = count;
    store->timer = (struct loop_timer){.fire = end_stage, .owner = store};
    store->pause = (struct loop_timer){.fire = store_changed_due, .owner = store};
    store->round = (struct quorum_round){.loop = loop,
                                         .nodes = store->nodes,
                                         .count = count,
                                         .timer = {.fire = close_votes, .owner = store}};
    for (size_t i = 0; i < count; i++) {
        store->nodes[i] = (struct quorum_node){.member = nodes[i].member,
                                               .loop = loop,
                                               .requests = &store->requests,
                                               .heard = on_node_reply,
                                               .arg = store};
        strcpy(store->nodes[i].name, nodes[i].name);
        store_on_event(nodes[i].member.store, &node_events, store);
    }
    return &store->base;
}
