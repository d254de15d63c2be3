#include "store/quorum/node.h"
#include "lock/lease.h"
#include "net/loop.h"

/* The time, at most, between what a node does and when we learn of it. */
#define SLACK_NS (10 * NS_PER_MS)

static void on_answer(void *arg, const struct answer *answer);

/* Sends the node's store the request of the order. The requests are copied, as some of each depends
 * on the node and on the order. */
static void begin_order(struct quorum_node *node, const struct quorum_order *order)
{
    const struct quorum_requests *requests = node->requests;
    struct acquire_request acquire = requests->acquire;
    struct release_request release = requests->release;
    struct survey_request survey = requests->survey;
    struct operation operation = {.verb = order->task,
                                  .terms = &requests->terms,
                                  .until = order->until,
                                  .done = on_answer,
                                  .arg = node};

    node->doing = *order;
    node->next.task = VERB_NONE;
    node->sent = loop_now(node->loop);
    switch (order->task) {
    case VERB_ACQUIRE:
        node->released = node->evicted = node->revoked = false;
        acquire.queue = acquire.listen = false; /* a quorum has no queue */
        operation.acquire = &acquire;
        break;
    case VERB_RENEW: operation.renew = &requests->renew; break;
    case VERB_RELEASE:
        release.uncertain = order->bar;
        release.at_least = order->at_least;
        release.in_time = !order->last;
        operation.release = &release;
        break;
    case VERB_FORCE: operation.force = &requests->force; break;
    case VERB_SURVEY:
        survey.each_arg = node;
        operation.survey = &survey;
        break;
    default: break;
    }
    store_start(node->member.store, &operation);
}

/* Notes what the node has of the owner after the answer to the order under way: an entry (held),
 * one that may be there (unsure) or was released (released), and when it was confirmed. */
static void learn_state(struct quorum_node *node, const struct answer *answer)
{
    bool known = answer->verdict != VERDICT_UNKNOWN;

    node->answered = known;
    node->from_dead_agent = false;
    switch (node->doing.task) {
    case VERB_ACQUIRE:
        node->unsure = answer->maybe_done || (!known && node->unsure);
        if (answer->cause == CAUSE_REVOKED) {
            node->held = true; /* all of it or a part, until the release */
            return;
        }
        break;
    case VERB_RENEW:
        if (answer->cause == CAUSE_REVOKED ||
            (answer->verdict == VERDICT_REFUSED && node->requests->acquire.key_count > 1))
            return; /* it has the lock, or a part of it, until the release */
        break;
    case VERB_RELEASE:
        if (known && node->doing.bar) /* no acquisition can succeed any more */
            node->unsure = false;
        if (node->doing.round != 0) /* the release has a vote: it is not of a failed try */
            node->released |= answer->verdict == VERDICT_GRANTED || answer->maybe_done;
        break;
    default: return;
    }
    if (known)
        node->held = answer->verdict == VERDICT_GRANTED && node->doing.task != VERB_RELEASE;
    if (known && !node->held && node->doing.task != VERB_RENEW)
        node->confirmed.ns = 0; /* the entry is gone, and was not taken away */
    if (known && node->held) {
        node->not_listening = answer->granted.not_listening;
        node->confirmed = loop_now(node->loop);
        node->ends = lease_end(node->sent, node->requests->acquire.lease);
    }
}

/* Whether the answer tells that our entry was taken away at the node: it was there, has not run out
 * and was not forgotten. To be asked before learn_state() takes the answer. */
static bool was_evicted(const struct quorum_node *node, const struct answer *answer)
{
    int64_t since = moment_until(node->confirmed, node->sent);

    if (answer->verdict != VERDICT_REFUSED || answer->cause != CAUSE_NOT_HOLDER)
        return false;
    if (answer->refused.revoked)
        return true;
    if (node->released || node->confirmed.ns == 0 ||
        moment_reached(node->ends, loop_now(node->loop)))
        return false;
    /* A node that forgot is younger than our entry was. Clocks may differ by one in a hundred. */
    int64_t memory_ms = node->member.report->seniority.memory_ms; /* 0: not told */
    return memory_ms == 0 || memory_ms * NS_PER_MS >= since - since / 100 - SLACK_NS;
}

/* The order under way is answered: begins the node's next order, if there is one, and then reports
 * the reply ("heard"). */
static void on_answer(void *arg, const struct answer *answer)
{
    struct quorum_node *node = arg;
    struct quorum_order done = node->doing, next = node->next;
    struct member_report report = *node->member.report; /* "next" may change it */
    struct quorum_reply reply = {&done, answer, &report, was_evicted(node, answer)};

    learn_state(node, answer);
    node->evicted |= reply.evicted;
    node->revoked |= reply.evicted && answer->refused.revoked;
    node->doing.task = node->next.task = VERB_NONE;
    /* A release without a vote (round 0) follows a try that was given up, perhaps with nothing. */
    bool is_needless = next.task == VERB_RELEASE && next.round == 0 && !quorum_node_may_hold(node);
    if (next.task != VERB_NONE && !is_needless)
        begin_order(node, &next);
    node->heard(node->arg, node, &reply);
}

void quorum_node_order(struct quorum_node *node, struct quorum_order order)
{
    if (node->doing.task == VERB_NONE)
        begin_order(node, &order);
    else
        node->next = order;
}

bool quorum_node_may_hold(const struct quorum_node *node)
{
    return node->held || node->unsure || node->doing.task == VERB_ACQUIRE ||
           node->next.task == VERB_ACQUIRE;
}

bool quorum_node_release_nowait(struct quorum_node *node)
{
    struct release_request request = node->requests->release;

    if (node->doing.task == VERB_RELEASE && node->member.report->sent && !node->unsure)
        return true; /* a release has gone out already */
    request.at_least = 0;
    request.uncertain = true;
    node->doing.task = node->next.task = VERB_NONE;
    node->held = false;
    return store_release_nowait(node->member.store, &request) == RELEASE_SENT;
}

/* -- fences ------------------------------------------------------------------------------------ */

bool quorum_is_settled(const struct quorum_requests *requests, const struct lock_grant *grants)
{
    for (size_t key = 0; key < requests->acquire.key_count; key++) {
        if (grants[key].fence != requests->fences[key])
            return false;
    }
    return true;
}
