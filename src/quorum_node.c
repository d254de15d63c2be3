/* One node of a quorum. */
#include "quorum_node.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"

/* Between what a node does and what we see of it. */
#define SLACK_NS (10 * NS_PER_MS)

static void complete(void *arg, const struct answer *answer);

static void begin(struct quorum_node *node, const struct quorum_order *order)
{
    const struct quorum_matter *matter = node->matter;
    struct lock_request request = matter->lock;

    node->doing = *order;
    node->next.task = TASK_NONE;
    node->sent = loop_now(node->loop);
    switch (order->task) {
    case TASK_NONE: break;
    case TASK_ACQUIRE:
        request.queue = request.listen = false;
        store_acquire(node->store, &request, order->until, complete, node);
        break;
    case TASK_RENEW: store_renew(node->store, &request, order->until, complete, node); break;
    case TASK_RELEASE:
        request.at_least = order->at_least;
        request.in_time = !order->last;
        store_release(node->store, &request, order->bar, order->until, complete, node);
        break;
    case TASK_FORCE: store_force(node->store, &matter->force, order->until, complete, node); break;
    case TASK_SURVEY: {
        struct survey_request survey = matter->survey;
        survey.each_arg = node;
        store_survey(node->store, &survey, order->until, complete, node);
        break;
    }
    }
}

/* What the answer tells about the node. */
static void learn(struct quorum_node *node, const struct answer *answer)
{
    bool known = answer->verdict != VERDICT_UNKNOWN;

    node->prompt = known;
    node->replica = !known && answer->cause == CAUSE_MISFIT;
    switch (node->doing.task) {
    case TASK_ACQUIRE:
        if (known)
            node->unsure = false;
        else
            node->unsure |= answer->maybe_done;
        break;
    case TASK_RENEW: break;
    case TASK_RELEASE:
        if (known && node->doing.bar)
            node->unsure = false;
        break;
    default: return;
    }
    if (known)
        node->held = answer->verdict == VERDICT_GRANTED && node->doing.task != TASK_RELEASE;
    if (known && !node->held && node->doing.task != TASK_RENEW)
        node->confirmed.ns = 0; /* what is not there any more was not taken away */
    if (known && node->held) {
        node->confirmed = loop_now(node->loop);
        node->lapse = lease_end(node->sent, node->matter->lock.lease);
    }
}

static void complete(void *arg, const struct answer *answer)
{
    struct quorum_node *node = arg;
    struct quorum_order done = node->doing, next = node->next;

    learn(node, answer);
    node->doing.task = node->next.task = TASK_NONE;
    /* What a try may have got, and did not, need not be given back. */
    if (next.task != TASK_NONE &&
        (next.task != TASK_RELEASE || next.round != 0 || quorum_node_may_hold(node)))
        begin(node, &next);
    node->heard(node->arg, node, &done, answer);
}

void quorum_node_order(struct quorum_node *node, struct quorum_order order)
{
    if (node->doing.task == TASK_NONE)
        begin(node, &order);
    else
        node->next = order;
}

bool quorum_node_may_hold(const struct quorum_node *node)
{
    return node->held || node->unsure || node->doing.task == TASK_ACQUIRE ||
           node->next.task == TASK_ACQUIRE;
}

bool quorum_node_was_evicted(const struct quorum_node *node, const struct answer *answer)
{
    int64_t since = moment_until(node->confirmed, node->sent);

    if (node->confirmed.ns == 0 || moment_reached(node->lapse, loop_now(node->loop)))
        return false;
    /* A node that forgot is younger than our entry was. */
    return answer->seniority.memory_ms == 0 ||
           answer->seniority.memory_ms * NS_PER_MS >= since - since / 100 - SLACK_NS;
}

void quorum_node_farewell(struct quorum_node *node)
{
    struct lock_request request = node->matter->lock;

    if (node->doing.task == TASK_RELEASE && !node->unsure)
        return; /* said already */
    request.at_least = 0;
    node->doing.task = node->next.task = TASK_NONE;
    store_farewell(node->store, &request);
    node->held = false;
}

/* -- the matter ------------------------------------------------------------------------------ */

static const char **copy_words(const char *const *words, size_t count)
{
    const char **copy = mem_zeroed((count + 1) * sizeof *copy);

    for (size_t i = 0; i < count; i++)
        copy[i] = mem_strdup(words[i]);
    return copy;
}

static void free_word(const char *word)
{
    free((void *)(uintptr_t)word);
}

static void free_words(const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free_word(words[i]);
    free((void *)(uintptr_t)words);
}

void quorum_matter_set_lock(struct quorum_matter *matter, const struct lock_request *request)
{
    struct lock_request old = matter->lock;

    matter->lock = *request;
    matter->lock.keys = copy_words(request->keys, request->key_count);
    matter->lock.owner = mem_strdup(request->owner);
    matter->lock.who = mem_strdup(request->who ? request->who : "");
    matter->lock.fences = NULL;
    free_words(old.keys, old.key_count);
    free_word(old.owner);
    free_word(old.who);
}

void quorum_matter_set_force(struct quorum_matter *matter, const struct force_request *request)
{
    struct force_request old = matter->force;

    matter->force = *request;
    matter->force.key = mem_strdup(request->key);
    matter->force.owners = copy_words(request->owners, request->owner_count);
    free_word(old.key);
    free_words(old.owners, old.owner_count);
}

void quorum_matter_set_survey(struct quorum_matter *matter, const struct survey_request *request)
{
    struct survey_request old = matter->survey;

    matter->survey = *request;
    matter->survey.patterns = copy_words(request->patterns, request->pattern_count);
    free_words(old.patterns, old.pattern_count);
}

bool quorum_matter_is_settled(const struct quorum_matter *matter, const struct answer *granted)
{
    for (size_t key = 0; key < matter->lock.key_count; key++) {
        if (granted->grants[key].fence != matter->fences[key])
            return false;
    }
    return true;
}

void quorum_matter_free(struct quorum_matter *matter)
{
    free_words(matter->lock.keys, matter->lock.key_count);
    free_word(matter->lock.owner);
    free_word(matter->lock.who);
    free_word(matter->force.key);
    free_words(matter->force.owners, matter->force.owner_count);
    free_words(matter->survey.patterns, matter->survey.pattern_count);
}
