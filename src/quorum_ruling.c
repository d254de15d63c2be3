/* What answers mean. */
#include "quorum_ruling.h"

#include <stdio.h>
#include <string.h>

static enum vote vote_of(const struct answer *answer)
{
    switch (answer->verdict) {
    case VERDICT_GRANTED: return VOTE_YES;
    case VERDICT_REFUSED: return VOTE_NO;
    case VERDICT_UNKNOWN: break;
    }
    return VOTE_UNKNOWN;
}

static struct quorum_ruling on_acquiring(const struct quorum_store *store,
                                         const struct quorum_order *done,
                                         const struct answer *answer)
{
    bool late = store->settling && done->task == TASK_ACQUIRE && answer->verdict == VERDICT_GRANTED;

    if (late && !quorum_matter_is_settled(&store->matter, answer))
        return (struct quorum_ruling){.then = TASK_RENEW};
    return (struct quorum_ruling){.vote = vote_of(answer)};
}

bool quorum_ruling_may_fill(const struct quorum_store *store)
{
    return store->hold == HOLD_OURS && !moment_reached(store->lapse, loop_now(store->loop));
}

bool quorum_ruling_is_missing(const struct quorum_store *store, const struct quorum_node *node,
                              const struct answer *answer)
{
    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_NOT_HOLDER &&
           quorum_ruling_may_fill(store) && !quorum_node_was_evicted(node, answer);
}

static struct quorum_ruling on_renewing(const struct quorum_store *store,
                                        const struct quorum_node *node,
                                        const struct quorum_order *done,
                                        const struct answer *answer)
{
    bool useless = answer->verdict == VERDICT_REFUSED || !quorum_ruling_may_fill(store);

    if (done->task == TASK_ACQUIRE && answer->verdict != VERDICT_UNKNOWN && useless)
        return (struct quorum_ruling){.vote = VOTE_VOID};
    if (done->task == TASK_RENEW && quorum_ruling_is_missing(store, node, answer))
        return (struct quorum_ruling){.then = TASK_ACQUIRE};
    return (struct quorum_ruling){.vote = vote_of(answer)};
}

static struct quorum_ruling on_releasing(const struct quorum_store *store,
                                         const struct quorum_node *node,
                                         const struct answer *answer)
{
    bool absent = answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_NOT_HOLDER;
    bool ours = store->hold != HOLD_FOREIGN;

    if (absent && ours && !quorum_node_was_evicted(node, answer))
        return (struct quorum_ruling){.vote = VOTE_VOID};
    return (struct quorum_ruling){.vote = vote_of(answer)};
}

static struct quorum_ruling on_forcing(const struct answer *answer)
{
    bool nobody = answer->verdict == VERDICT_REFUSED && !answer->holder.owner[0];

    return (struct quorum_ruling){.vote = nobody ? VOTE_VOID : vote_of(answer)};
}

/* A node before this one that is the same server. */
static const struct quorum_node *twin_of(const struct quorum_store *store,
                                         const struct quorum_node *node)
{
    const char *id = node->store->node;

    for (const struct quorum_node *other = store->nodes; *id && other < node; other++) {
        if (strcmp(id, other->store->node) == 0)
            return other;
    }
    return NULL;
}

struct quorum_ruling quorum_ruling(const struct quorum_store *store, const struct quorum_node *node,
                                   const struct quorum_order *done, const struct answer *answer)
{
    if (twin_of(store, node))
        return (struct quorum_ruling){.vote = VOTE_UNKNOWN};
    switch (store->task) {
    case TASK_ACQUIRE: return on_acquiring(store, done, answer);
    case TASK_RENEW: return on_renewing(store, node, done, answer);
    case TASK_RELEASE: return on_releasing(store, node, answer);
    case TASK_FORCE: return on_forcing(answer);
    case TASK_SURVEY:
    case TASK_NONE: break;
    }
    return (struct quorum_ruling){.vote = vote_of(answer)};
}

bool quorum_ruling_find_fault(const struct quorum_store *store, struct answer *fault)
{
    *fault = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_MISFIT};
    for (size_t i = 0; i < store->count; i++) {
        const struct quorum_node *twin = twin_of(store, &store->nodes[i]);
        if (!twin)
            continue;
        snprintf(fault->text, sizeof fault->text,
                 "the same node twice in a quorum: %.80s and %.80s are one server",
                 store->names[twin - store->nodes].name, store->names[i].name);
        return true;
    }
    return false;
}

bool quorum_ruling_is_fault(const struct quorum_store *store, const struct quorum_node *node,
                            const struct answer *heard, struct answer *fault)
{
    bool held = store->task == TASK_RENEW || store->task == TASK_RELEASE;

    if (held && store->hold != HOLD_FOREIGN)
        return false; /* what is held is not lost for it */
    if (quorum_ruling_find_fault(store, fault))
        return true;
    if (node->replica)
        snprintf(fault->text, sizeof fault->text, "not fit for a quorum: %.220s", heard->text);
    return node->replica;
}
