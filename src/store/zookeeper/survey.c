/* A survey of locks: which there are, who holds them, and who waits for them. It has three steps:
 * found_names() hears which KEYs there are, unless all were named; listed_branches() hears which
 * nodes a KEY has in each of its branches (enum zk_branch); read_nodes() hears what is in them. */
#include "store/zookeeper/survey.h"

#include <stdio.h>

#include "base/mem.h"
#include "lock/key.h"
#include "store/views.h"

/* A lock that the survey looks at. */
struct zk_sight {
    char *key, *branches[ZK_BRANCHES];
    bool named; /* asked for by its name: reported also when it is free */
    struct zk_queue queues[ZK_BRANCHES];
    size_t party_count; /* in all of them */
};

/* In the order of the steps. */
static zk_hear found_names, listed_branches, read_nodes;

enum asked_by { BY_NAME, BY_GLOB };

/* Adds a key, which the survey owns then, unless it was named already: named ones are added first,
 * and the folder has each key once. */
static void add_key(struct zk_store *store, char *key, enum asked_by by)
{
    for (size_t i = 0; i < store->sight_count && store->sights[i].named; i++) {
        if (strcmp(store->sights[i].key, key) != 0)
            continue;
        free(key);
        return;
    }
    struct zk_sight *sight = MEM_APPEND(store->sights, store->sight_count);
    *sight = (struct zk_sight){.key = key, .named = by == BY_NAME};
    zk_name_branches(store, key, sight->branches);
}

void zk_survey_clear(struct zk_store *store)
{
    for (size_t i = 0; i < store->sight_count; i++) {
        struct zk_sight *sight = &store->sights[i];
        for (size_t j = 0; j < ZK_BRANCHES; j++) {
            zk_queue_free(&sight->queues[j]);
            free(sight->branches[j]);
        }
        free(sight->key);
    }
    free(store->sights);
    store->sights = NULL;
    store->sight_count = 0;
}

/* Ends the operation: granted with ZK_OK; otherwise it fails with that error of the server's. */
static void end_survey(struct zk_store *store, int error)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};

    zk_survey_clear(store);
    if (error == ZK_OK)
        zk_tell(store, &answer);
    else
        zk_tell_error(store, error);
}

/* -- which there are --------------------------------------------------------------------------- */

/* Lists the nodes below all locks that were found. */
static void ask_branches(struct zk_store *store)
{
    for (size_t i = 0; i < store->sight_count; i++)
        zk_ask_branches(store, store->sights[i].branches);
    zk_ask(store, listed_branches);
}

void zk_survey(struct zk_store *store, const struct survey_request *request)
{
    bool globs = request->pattern_count == 0;

    zk_survey_clear(store);
    zk_session_wish(store->session, ZK_TIMEOUT_LEAST);
    for (size_t i = 0; i < request->pattern_count; i++) {
        if (key_is_glob(request->patterns[i]))
            globs = true;
        else
            add_key(store, key_from_pattern(request->patterns[i]), BY_NAME);
    }
    if (globs) {
        zk_query(store->batch, OP_GET_CHILDREN, *store->folder ? store->folder : "/", ZK_NO_WATCH);
        zk_ask(store, found_names);
    } else {
        ask_branches(store);
    }
}

/* Takes the names of all locks' nodes, and adds those that match. */
static void found_names(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_names names;
    struct jute_text name;
    int error = zk_read_children(replies, &names);

    while (error == ZK_OK && zk_next_name(&names, &name)) {
        char *key = zk_path_to_key(name);
        if (key && survey_wants(store->base.operation.survey, key))
            add_key(store, key, BY_GLOB);
        else
            free(key);
    }
    if (error != ZK_OK || names.in.damaged)
        end_survey(store, error != ZK_OK ? error : ZK_MARSHALLING);
    else
        ask_branches(store);
}

/* -- who is there ------------------------------------------------------------------------------ */

/* Takes the lists of all branches, and asks what is in the first node of each party. A branch that
 * this user may not read has none: another program's node may lie there. */
static void listed_branches(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->sight_count; i++) {
        struct zk_sight *sight = &store->sights[i];
        for (enum zk_branch branch = 0; branch < ZK_BRANCHES; branch++) {
            struct zk_queue *queue = &sight->queues[branch];
            int error = zk_queue_read(replies++, branch, queue);
            if (error != ZK_OK && (error != ZK_NO_AUTH || sight->named)) {
                zk_session_drop_batch(store->session);
                end_survey(store, error);
                return;
            }
            for (size_t party = 0; party < queue->count; party++) {
                if (!queue->all[party].first_of_party)
                    continue;
                zk_get_child(store->batch, sight->branches[branch], queue->all[party].name);
                sight->party_count++;
            }
        }
    }
    zk_ask(store, read_nodes);
}

/* -- what is in the nodes ---------------------------------------------------------------------- */

/* Reads a party by its first node. limited: it holds a semaphore, or waits for one, whose limit
 * comes to *limit from the first party of rlock's; other programs' nodes do not tell it, and it
 * stays 0. */
static void read_party(const struct zk_contender *one, bool limited, struct jute_text text,
                       const struct zk_stat *stat, struct lock_party *party, unsigned *limit)
{
    struct zk_node_data data;

    zk_read_party(one, text, stat, clock_wall() / NS_PER_MS, party);
    if (limited && *limit == 0 && zk_node_data_parse(text, &data))
        *limit = data.limit;
    if (limited)
        party->mode = LOCK_LIMIT;
    if (!one->holds) /* a waiter has no fence yet */
        party->fence = 0;
}

/* Reports a lock, and moves *replies behind those about its parties. A node that may not be read is
 * shown as far as its name tells; one that has gone since its name was read is left out. */
static void report_lock(const struct zk_store *store, const struct zk_sight *sight,
                        const struct zk_reply **replies)
{
    struct lock_party *holders = mem_zeroed((sight->party_count + 1) * sizeof *holders);
    struct lock_party *waiters = mem_zeroed((sight->party_count + 1) * sizeof *waiters);
    struct lock_view view = {.key = sight->key, .holders = holders, .waiters = waiters};

    for (size_t i = 0; i < ZK_BRANCHES; i++) {
        for (size_t j = 0; j < sight->queues[i].count; j++) {
            const struct zk_contender *one = &sight->queues[i].all[j];
            struct jute_text text = {"", 0};
            struct zk_stat stat = {0};
            if (!one->first_of_party || zk_read_data((*replies)++, &text, &stat) == ZK_NO_NODE)
                continue;
            struct lock_party *party =
                one->holds ? &holders[view.holder_count++] : &waiters[view.waiter_count++];
            read_party(one, i != ZK_PLAIN, text, &stat, party, &view.limit);
        }
    }
    view.mode = view.holder_count > 0 ? holders[0].mode : LOCK_EXCLUSIVE;
    /* The holders are in the order of the queue: the last one has the latest fence. */
    view.fence = view.holder_count > 0 ? holders[view.holder_count - 1].fence : 0;
    /* A waiter may ask for another mode than the holders have. */
    if (view.mode != LOCK_LIMIT)
        view.limit = 0;
    if (sight->named || view.holder_count + view.waiter_count > 0)
        store->base.operation.survey->each(store->base.operation.survey->each_arg, &view);
    free(holders);
    free(waiters);
}

/* Takes what is in the nodes, reports the locks, and ends the survey; if one of the replies is an
 * error, reports none. */
static void read_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    const struct zk_reply *at = replies;
    int error = ZK_OK;

    for (size_t i = 0; i < store->sight_count && error == ZK_OK; i++) {
        for (size_t j = 0; j < store->sights[i].party_count && error == ZK_OK; j++, at++) {
            struct jute_text text;
            struct zk_stat stat;
            error = zk_read_data(at, &text, &stat);
            if (error == ZK_NO_NODE || error == ZK_NO_AUTH)
                error = ZK_OK;
        }
    }
    for (size_t i = 0; i < store->sight_count && error == ZK_OK; i++)
        report_lock(store, &store->sights[i], &replies);
    end_survey(store, error);
}
