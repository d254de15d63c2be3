/* Surveys of a Redis Cluster: nodes first, then keys. */
#include "cluster_survey.h"

#include <stdio.h>

#include "cluster.h"
#include "dice.h"
#include "key.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"
#include "store_redis.h"

/* A lock that was reported, or a key that is to be asked about. */
struct entry {
    char *key;
    bool named;            /* asked for: to be reported even when it is free */
    struct lock_view view; /* its key NULL: not known yet */
};

struct cluster_survey {
    struct loop *loop;
    struct cluster *cluster;
    char *prefix;
    void (*each)(void *arg, const struct lock_view *view);
    void *each_arg;
    struct moment until, patient;
    store_done *done;
    void *arg;

    char **globs;
    size_t glob_count;
    struct entry *named, *found;
    size_t named_count, found_count;
    size_t *masters, master_count, next;
    unsigned failures;
    struct loop_timer again;
};

static void ask_next_node(struct cluster_survey *survey);
static void ask_next_key(struct cluster_survey *survey);

/* -- entries ----------------------------------------------------------------------------------- */

static struct entry *add_entry(struct entry **entries, size_t *count, char *key, bool named)
{
    *entries = mem_checked(realloc(*entries, (*count + 1) * sizeof **entries));
    (*entries)[*count] = (struct entry){.key = key, .named = named};
    return &(*entries)[(*count)++];
}

static struct lock_party *copy_parties(const struct lock_party *parties, size_t count)
{
    struct lock_party *copy = mem_zeroed((count + 1) * sizeof *copy);

    if (count > 0)
        memcpy(copy, parties, count * sizeof *copy);
    return copy;
}

static void set_view(struct entry *entry, const struct lock_view *view)
{
    entry->view = *view;
    entry->view.key = entry->key;
    entry->view.holders = copy_parties(view->holders, view->holder_count);
    entry->view.waiters = copy_parties(view->waiters, view->waiter_count);
}

static void free_view(struct entry *entry)
{
    free((void *)(uintptr_t)entry->view.holders);
    free((void *)(uintptr_t)entry->view.waiters);
    entry->view = (struct lock_view){0};
}

static void free_entries(struct entry **entries, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        free_view(&(*entries)[i]);
        free((*entries)[i].key);
    }
    free(*entries);
    *entries = NULL;
    *count = 0;
}

/* -- the end ----------------------------------------------------------------------------------- */

static void finish(struct cluster_survey *survey, const struct answer *answer)
{
    cluster_tidy(survey->cluster);
    survey->done(survey->arg, answer);
}

/* Of the same key, one that was asked for comes first, and one whose lock was seen. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    if (order == 0)
        order = (int)right->named - (int)left->named;
    return order ? order : !!right->view.holder_count - !!left->view.holder_count;
}

/* A key that moves from one node to the other while they are asked may be there twice. */
static void report(struct cluster_survey *survey)
{
    static const struct answer granted = {.verdict = VERDICT_GRANTED};
    const char *last = NULL;

    for (size_t i = 0; i < survey->named_count; i++) {
        struct entry *entry = &survey->named[i];
        add_entry(&survey->found, &survey->found_count, entry->key, entry->named)->view =
            entry->view;
        survey->found[survey->found_count - 1].view.key = entry->view.key ? entry->key : NULL;
    }
    free(survey->named);
    survey->named = NULL;
    survey->named_count = 0;
    if (survey->found_count > 0)
        qsort(survey->found, survey->found_count, sizeof *survey->found, compare_entries);
    for (size_t i = 0; i < survey->found_count; i++) {
        const struct entry *entry = &survey->found[i];
        const struct lock_view *view = &entry->view;
        bool wanted = entry->named || view->holder_count || view->waiter_count;
        if (view->key && wanted && (!last || strcmp(last, entry->key) != 0)) {
            last = entry->key;
            survey->each(survey->each_arg, view);
        }
    }
    finish(survey, &granted);
}

/* -- keys -------------------------------------------------------------------------------------- */

static void take_named(void *arg, const struct lock_view *view)
{
    struct cluster_survey *survey = arg;
    struct entry *entry = &survey->named[survey->next];

    free_view(entry);
    set_view(entry, view);
}

/* The key as a pattern that stands for itself alone. */
static char *as_pattern(const char *key)
{
    char *pattern = mem_zeroed(2 * strlen(key) + 1), *to = pattern;

    for (; *key; key++) {
        if (strchr("*?[\\", *key))
            *to++ = '\\';
        *to++ = *key;
    }
    return pattern;
}

static void ask_key(void *arg, struct store *node, struct moment until, store_done *done,
                    void *done_arg)
{
    struct cluster_survey *survey = arg;
    char *pattern = as_pattern(survey->named[survey->next].key);
    const char *patterns[] = {pattern};
    struct survey_request request = {patterns, 1, take_named, survey};

    store_survey(node, &request, until, done, done_arg);
    free(pattern);
}

static void key_answered(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;
    bool skipped = answer->cause == CAUSE_MISFIT && !survey->named[survey->next].named;

    if (answer->verdict != VERDICT_GRANTED && !skipped) {
        finish(survey, answer);
        return;
    }
    survey->next++;
    ask_next_key(survey);
}

static void ask_next_key(struct cluster_survey *survey)
{
    if (survey->next == survey->named_count) {
        report(survey);
        return;
    }
    char *name = key_in_store(survey->prefix, survey->named[survey->next].key);
    unsigned slot = cluster_slot(name);
    free(name);
    cluster_call(survey->cluster, slot, ask_key, survey, survey->until, survey->patient,
                 key_answered, survey);
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void take_found(void *arg, const struct lock_view *view)
{
    struct cluster_survey *survey = arg;

    set_view(add_entry(&survey->found, &survey->found_count, mem_strdup(view->key), false), view);
}

static void take_moved(void *arg, const char *key)
{
    struct cluster_survey *survey = arg;
    add_entry(&survey->named, &survey->named_count, mem_strdup(key), false);
}

static void ask_node(void *arg, struct store *node, struct moment until, store_done *done,
                     void *done_arg)
{
    struct cluster_survey *survey = arg;
    struct survey_request request = {(const char *const *)survey->globs, survey->glob_count,
                                     take_found, survey};

    store_redis_survey(node, &request, take_moved, survey, until, done, done_arg);
}

static void map_read(void *arg, const struct answer *answer);

static void read_map(struct loop_timer *timer)
{
    struct cluster_survey *survey = timer->owner;

    free_entries(&survey->found, &survey->found_count);
    cluster_read_map(survey->cluster, survey->until, map_read, survey);
}

/* A node that is gone: in a moment another may be in its place. */
static void node_missing(struct cluster_survey *survey, const struct answer *answer)
{
    struct moment now = loop_now(survey->loop);
    struct moment again = moment_plus(now, lease_backoff(survey->failures++, dice()));
    bool passing = answer->cause == CAUSE_UNREACHABLE || answer->cause == CAUSE_NOT_READY;

    if (passing && again.ns < survey->patient.ns)
        loop_arm(survey->loop, &survey->again, again);
    else
        finish(survey, answer);
}

static void node_answered(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;

    if (answer->verdict != VERDICT_GRANTED) {
        node_missing(survey, answer);
        return;
    }
    survey->next++;
    ask_next_node(survey);
}

static void ask_next_node(struct cluster_survey *survey)
{
    if (survey->next < survey->master_count) {
        cluster_call_node(survey->cluster, survey->masters[survey->next], ask_node, survey,
                          survey->until, node_answered, survey);
        return;
    }
    survey->next = 0;
    ask_next_key(survey);
}

static void map_read(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;
    const struct cluster_map *map = cluster_map_of(survey->cluster);
    static const struct answer nowhere = {.verdict = VERDICT_UNKNOWN,
                                          .cause = CAUSE_NOT_READY,
                                          .text = "the Cluster names no node that could be asked"};

    if (answer->verdict != VERDICT_GRANTED) {
        finish(survey, answer);
        return;
    }
    free(survey->masters);
    survey->masters = mem_zeroed(map->node_count * sizeof *survey->masters);
    survey->master_count = cluster_map_masters(map, survey->masters);
    survey->next = 0;
    if (survey->master_count > 0)
        ask_next_node(survey);
    else
        finish(survey, &nowhere);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* A key written as a pattern: a\*b is a*b. */
static char *key_of(const char *pattern)
{
    char *key = mem_zeroed(strlen(pattern) + 1), *to = key;

    for (; *pattern; pattern++) {
        if (*pattern == '\\' && pattern[1])
            pattern++;
        *to++ = *pattern;
    }
    return key;
}

struct cluster_survey *cluster_survey_start(struct loop *loop, struct cluster *cluster,
                                            const char *prefix,
                                            const struct survey_request *request,
                                            struct moment until, struct moment patient,
                                            store_done *done, void *arg)
{
    struct cluster_survey *survey = mem_zeroed(sizeof *survey);
    size_t count = request->pattern_count;

    *survey = (struct cluster_survey){.loop = loop,
                                      .cluster = cluster,
                                      .until = until,
                                      .patient = patient,
                                      .done = done,
                                      .arg = arg,
                                      .each = request->each,
                                      .each_arg = request->each_arg};
    survey->prefix = mem_strdup(prefix);
    survey->again = (struct loop_timer){.fire = read_map, .owner = survey};
    survey->globs = mem_zeroed((count + 1) * sizeof *survey->globs);
    for (size_t i = 0; i < count; i++) {
        const char *pattern = request->patterns[i];
        if (key_is_glob(pattern))
            survey->globs[survey->glob_count++] = mem_strdup(pattern);
        else
            add_entry(&survey->named, &survey->named_count, key_of(pattern), true);
    }
    if (survey->glob_count > 0 || count == 0)
        cluster_read_map(cluster, until, map_read, survey);
    else
        ask_next_key(survey);
    return survey;
}

void cluster_survey_free(struct cluster_survey *survey)
{
    loop_disarm(survey->loop, &survey->again);
    for (size_t i = 0; i < survey->glob_count; i++)
        free(survey->globs[i]);
    free(survey->globs);
    free_entries(&survey->named, &survey->named_count);
    free_entries(&survey->found, &survey->found_count);
    free(survey->masters);
    free(survey->prefix);
    free(survey);
}
