#include "store/zookeeper/operation.h"

#include <stdio.h>

#include "base/mem.h"
#include "lock/key.h"
#include "store/views.h"

/* One that holds the lock or waits for it, as its first node tells. */
struct seen {
    const struct zk_contender *contender;
    bool limited; /* it is a semaphore's */
    bool gone;    /* since the queue was read */
    char *text;
    size_t size;
    struct zk_stat stat;
};

enum { QUEUES = 3 };

struct sight {
    char *key, *node;
    bool named; /* asked for by its name: reported also when it is free */
    /* The children of the lock's node; the leases of a semaphore; and those in its queue. */
    struct zk_queue queues[QUEUES];
    struct seen *seen;
    size_t seen_count;
};

enum stage { STAGE_NAMES, STAGE_QUEUES, STAGE_SEMAPHORES, STAGE_DATA, STAGE_OVER };

struct zk_survey {
    char *folder;
    const struct survey_request *request;
    enum stage stage;
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

/* Returns the node whose children are queue number j. The caller frees. */
static char *node_of(const struct sight *sight, size_t j)
{
    return j == 0 ? mem_strdup(sight->node)
                  : zk_path_join(sight->node, j == 1 ? "leases" : "locks");
}

/* Returns whether the lock has queue number j: all have one, and a semaphore has two more. */
static bool has_queue(const struct sight *sight, size_t j)
{
    return j == 0 || sight->queues[0].semaphore;
}

/* Asks for the queues of each lock from one number to another. */
static void ask_queues(struct zk_survey *survey, struct zk_batch *batch, size_t from, size_t to)
{
    survey->stage = from == 0 ? STAGE_QUEUES : STAGE_SEMAPHORES;
    for (size_t i = 0; i < survey->count; i++) {
        for (size_t j = from; j <= to && has_queue(&survey->sights[i], j); j++) {
            char *path = node_of(&survey->sights[i], j);
            zk_children(batch, path, false);
            free(path);
        }
    }
}

static void ask_parties(struct sight *sight, struct zk_batch *batch, size_t j)
{
    const struct zk_queue *queue = &sight->queues[j];
    char *parent = node_of(sight, j);

    for (size_t i = 0; i < queue->count; i++) {
        if (!queue->all[i].heads)
            continue;
        zk_get_child(batch, parent, queue->all[i].name);
        sight->seen[sight->seen_count++] =
            (struct seen){.contender = &queue->all[i], .limited = j > 0};
    }
    free(parent);
}

static void ask_data(struct zk_survey *survey, struct zk_batch *batch)
{
    survey->stage = STAGE_DATA;
    for (size_t i = 0; i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        size_t count = 0;
        for (size_t j = 0; j < QUEUES; j++)
            count += sight->queues[j].count;
        sight->seen = mem_zeroed((count + 1) * sizeof *sight->seen);
        for (size_t j = 0; j < QUEUES; j++)
            ask_parties(sight, batch, j);
    }
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
        ask_queues(survey, batch, 0, 0);
    return survey;
}

void zk_survey_free(struct zk_survey *survey)
{
    for (size_t i = 0; survey && i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        for (size_t j = 0; j < sight->seen_count; j++)
            free(sight->seen[j].text);
        free(sight->seen);
        for (size_t j = 0; j < QUEUES; j++)
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

    if (reply->error == ZK_NO_NODE)
        return ZK_OK;
    if (reply->error != ZK_OK || !zk_read_children(reply, &names))
        return reply->error ? reply->error : ZK_MARSHALLING;
    while (zk_next_name(&names, &name)) {
        char *key = zk_path_to_key(name);
        if (key && survey_wants(survey->request, key))
            add(survey, key, false);
        else
            free(key);
    }
    return names.in.damaged ? ZK_MARSHALLING : ZK_OK;
}

/* Takes what ask_queues() asked for. Another program's node may lie there, which this user may not
 * read. */
static int take_queues(struct zk_survey *survey, const struct zk_reply *replies, size_t from,
                       size_t to)
{
    for (size_t i = 0; i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        for (size_t j = from; j <= to && has_queue(sight, j); j++) {
            int error = zk_queue_read(replies++, &sight->queues[j]);
            if (error != ZK_OK && (error != ZK_NO_AUTH || sight->named))
                return error;
            if (j > 0)
                zk_queue_set_holding(&sight->queues[j], j == 1);
        }
    }
    return ZK_OK;
}

/* A node that may not be read is shown as far as its name tells; one that has gone since its name
 * was read is left out. */
static int take_data(struct zk_survey *survey, const struct zk_reply *replies)
{
    for (size_t i = 0; i < survey->count; i++) {
        struct sight *sight = &survey->sights[i];
        for (size_t j = 0; j < sight->seen_count; j++) {
            struct seen *seen = &sight->seen[j];
            struct jute_text text;
            int error = zk_read_data(replies++, &text, &seen->stat);
            seen->gone = error == ZK_NO_NODE;
            if (seen->gone || error == ZK_NO_AUTH)
                continue;
            if (error != ZK_OK)
                return error;
            seen->text = mem_checked(strndup(text.bytes, text.size));
            seen->size = strlen(seen->text);
        }
    }
    return ZK_OK;
}

int zk_survey_take(struct zk_survey *survey, const struct zk_reply *replies, struct zk_batch *batch)
{
    int error = ZK_OK;

    switch (survey->stage) {
    case STAGE_NAMES:
        if ((error = take_names(survey, replies)) == ZK_OK)
            ask_queues(survey, batch, 0, 0);
        break;
    case STAGE_QUEUES:
        if ((error = take_queues(survey, replies, 0, 0)) == ZK_OK)
            ask_queues(survey, batch, 1, 2);
        if (error == ZK_OK && batch->count == 0)
            ask_data(survey, batch);
        break;
    case STAGE_SEMAPHORES:
        if ((error = take_queues(survey, replies, 1, 2)) == ZK_OK)
            ask_data(survey, batch);
        break;
    case STAGE_DATA:
        error = take_data(survey, replies);
        survey->stage = STAGE_OVER;
        break;
    case STAGE_OVER: break;
    }
    return error;
}

/* -- reporting --------------------------------------------------------------------------------- */

/* That the first of rlock's tells; 0: all are other programs', which know it for themselves. */
static unsigned limit_of(const struct sight *sight)
{
    struct zk_node_data data;

    for (size_t i = 0; i < sight->seen_count; i++) {
        const struct seen *seen = &sight->seen[i];
        struct jute_text text = {seen->text ? seen->text : "", seen->size};
        if (seen->limited && zk_node_data_parse(text, &data))
            return data.limit;
    }
    return 0;
}

static void report(const struct zk_survey *survey, const struct sight *sight, int64_t now_ms)
{
    struct lock_party *holders = mem_zeroed((sight->seen_count + 1) * sizeof *holders);
    struct lock_party *waiters = mem_zeroed((sight->seen_count + 1) * sizeof *waiters);
    struct lock_view view = {.key = sight->key, .holders = holders, .waiters = waiters};

    for (size_t i = 0; i < sight->seen_count; i++) {
        const struct seen *seen = &sight->seen[i];
        const struct zk_contender *one = seen->contender;
        if (seen->gone)
            continue;
        struct lock_party *party =
            one->holds ? &holders[view.holder_count++] : &waiters[view.waiter_count++];
        struct jute_text text = {seen->text ? seen->text : "", seen->size};
        zk_read_party(one, text, &seen->stat, now_ms, party);
        party->mode = seen->limited ? LOCK_LIMIT : party->mode;
        if (!one->holds)
            party->fence = 0;
    }
    view.mode = view.holder_count > 0 ? holders[0].mode : LOCK_EXCLUSIVE;
    view.limit = view.mode == LOCK_LIMIT ? limit_of(sight) : 0;
    view.fence = view.holder_count > 0 ? holders[view.holder_count - 1].fence : 0;
    if (sight->named || view.holder_count + view.waiter_count > 0)
        survey->request->each(survey->request->each_arg, &view);
    free(holders);
    free(waiters);
}

void zk_survey_report(const struct zk_survey *survey, int64_t now_ms)
{
    for (size_t i = 0; i < survey->count; i++)
        report(survey, &survey->sights[i], now_ms);
}
