#include "store/zookeeper/operation.h"

#include <stdio.h>

#include "base/mem.h"
#include "lock/key.h"
#include "store/views.h"

struct sight {
    char *key, *node;
    bool named; /* asked for by its name: reported also when it is free */
    struct zk_queue queues[ZK_BRANCHES];
    size_t party_count; /* in all of them */
};

enum stage { STAGE_NAMES, STAGE_QUEUES, STAGE_DATA };

struct zk_survey {
    char *folder;
    const struct survey_request *request;
    enum stage stage; /* the latest requests are about that */
    struct sight *sights;
    size_t count;
};

/* Takes the key. The named ones come first; the folder has each of its own once. */
static void add(struct zk_survey *survey, char *key, bool named)
{
    for (size_t i = 0; i < survey->count && survey->sights[i].named; i++) {
        if (strcmp(survey->sights[i].key, key) != 0)
            continue;
        free(key);
        return;
    }
    *MEM_APPEND(survey->sights, survey->count) =
        (struct sight){.key = key, .node = zk_path_of_key(survey->folder, key), .named = named};
}

/* -- asking ------------------------------------------------------------------------------------ */

static void ask_queues(struct zk_survey *survey, struct zk_batch *batch)
{
    survey->stage = STAGE_QUEUES;
    for (size_t i = 0; i < survey->count; i++) {
        for (enum zk_branch branch = 0; branch < ZK_BRANCHES; branch++) {
            char *path = zk_path_of_branch(survey->sights[i].node, branch);
            zk_children(batch, path, false);
            free(path);
        }
    }
}

/* Asks what is in the first node of each party of a branch. */
static void ask_parties(struct sight *sight, struct zk_batch *batch, enum zk_branch branch)
{
    const struct zk_queue *queue = &sight->queues[branch];
    char *parent = zk_path_of_branch(sight->node, branch);

    for (size_t i = 0; i < queue->count; i++) {
        if (!queue->all[i].heads)
            continue;
        zk_get_child(batch, parent, queue->all[i].name);
        sight->party_count++;
    }
    free(parent);
}

static void ask_data(struct zk_survey *survey, struct zk_batch *batch)
{
    survey->stage = STAGE_DATA;
    for (size_t i = 0; i < survey->count; i++)
        for (enum zk_branch branch = 0; branch < ZK_BRANCHES; branch++)
            ask_parties(&survey->sights[i], batch, branch);
}

struct zk_survey *zk_survey_new(const char *folder, const struct survey_request *request,
                                struct zk_batch *batch)
{
    struct zk_survey *survey = mem_zeroed(sizeof *survey);
    bool globs = request->pattern_count == 0;

    survey->folder = mem_strdup(folder);
    survey->request = request;
    for (size_t i = 0; i < request->pattern_count; i++) {
        if (key_is_glob(request->patterns[i]))
            globs = true;
        else
            add(survey, key_from_pattern(request->patterns[i]), true);
    }
    if (globs)
        zk_children(batch, *folder ? folder : "/", false);
    else
        ask_queues(survey, batch);
    return survey;
}

void zk_survey_free(struct zk_survey *survey)
{
    for (size_t i = 0; survey && i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        for (size_t j = 0; j < ZK_BRANCHES; j++)
            zk_queue_free(&sight->queues[j]);
        free(sight->key);
        free(sight->node);
    }
    if (survey) {
        free(survey->sights);
        free(survey->folder);
    }
    free(survey);
}

/* -- hearing ----------------------------------------------------------------------------------- */

static int take_names(struct zk_survey *survey, const struct zk_reply *reply)
{
    struct zk_names names;
    struct jute_text name;

    int error = zk_read_children(reply, &names);
    if (error != ZK_OK)
        return error;
    while (zk_next_name(&names, &name)) {
        char *key = zk_path_to_key(name);
        if (key && survey_wants(survey->request, key))
            add(survey, key, false);
        else
            free(key);
    }
    return names.in.damaged ? ZK_MARSHALLING : ZK_OK;
}

/* Another program's node may lie there, which this user may not read. */
static int take_queues(struct zk_survey *survey, const struct zk_reply *replies)
{
    for (size_t i = 0; i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        for (enum zk_branch branch = 0; branch < ZK_BRANCHES; branch++) {
            int error = zk_queue_read(replies++, branch, &sight->queues[branch]);
            if (error != ZK_OK && (error != ZK_NO_AUTH || sight->named))
                return error;
        }
    }
    return ZK_OK;
}

/* *limit: of a semaphore, as the first of rlock's tells; it stays 0 where all are other programs',
 * which know it for themselves. */
static void read_party(const struct zk_contender *one, bool limited, struct jute_text text,
                       const struct zk_stat *stat, struct lock_party *party, unsigned *limit)
{
    struct zk_node_data data;

    zk_read_party(one, text, stat, clock_wall() / NS_PER_MS, party);
    if (limited && *limit == 0 && zk_node_data_parse(text, &data))
        *limit = data.limit;
    if (limited)
        party->mode = LOCK_LIMIT;
    if (!one->holds)
        party->fence = 0;
}

/* Reports a lock, and moves *replies behind those about its parties. A node that may not be read is
 * shown as far as its name tells; one that has gone since its name was read is left out. */
static void report(const struct zk_survey *survey, const struct sight *sight,
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
            if (!one->heads || zk_read_data((*replies)++, &text, &stat) == ZK_NO_NODE)
                continue;
            struct lock_party *party =
                one->holds ? &holders[view.holder_count++] : &waiters[view.waiter_count++];
            read_party(one, i != ZK_PLAIN, text, &stat, party, &view.limit);
        }
    }
    view.mode = view.holder_count > 0 ? holders[0].mode : LOCK_EXCLUSIVE;
    view.fence = view.holder_count > 0 ? holders[view.holder_count - 1].fence : 0;
    if (view.mode != LOCK_LIMIT)
        view.limit = 0;
    if (sight->named || view.holder_count + view.waiter_count > 0)
        survey->request->each(survey->request->each_arg, &view);
    free(holders);
    free(waiters);
}

/* Reports nothing if there is an error. */
static int take_data(const struct zk_survey *survey, const struct zk_reply *replies)
{
    const struct zk_reply *at = replies;

    for (size_t i = 0; i < survey->count; i++) {
        for (size_t j = 0; j < survey->sights[i].party_count; j++, at++) {
            struct jute_text text;
            struct zk_stat stat;
            int error = zk_read_data(at, &text, &stat);
            if (error != ZK_OK && error != ZK_NO_NODE && error != ZK_NO_AUTH)
                return error;
        }
    }
    for (size_t i = 0; i < survey->count; i++)
        report(survey, &survey->sights[i], &replies);
    return ZK_OK;
}

int zk_survey_take(struct zk_survey *survey, const struct zk_reply *replies, struct zk_batch *batch)
{
    int error = ZK_OK;

    switch (survey->stage) {
    case STAGE_NAMES:
        if ((error = take_names(survey, replies)) == ZK_OK)
            ask_queues(survey, batch);
        break;
    case STAGE_QUEUES:
        if ((error = take_queues(survey, replies)) == ZK_OK)
            ask_data(survey, batch);
        if (error == ZK_OK && batch->count == 0)
            error = take_data(survey, replies);
        break;
    case STAGE_DATA: error = take_data(survey, replies); break;
    }
    return error;
}
