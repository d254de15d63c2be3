/* Surveys of a Redis Cluster: nodes first, then the keys that are not known from there. */
#include "cluster_survey.h"

#include <stdio.h>

#include "cluster.h"
#include "cluster_views.h"
#include "dice.h"
#include "key.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"
#include "store_redis.h"

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
    struct cluster_views views;
    size_t *masters, master_count, next;
    unsigned failures;
    struct loop_timer again;
};

static void ask_next_node(struct cluster_survey *survey);
static void ask_next_key(struct cluster_survey *survey);

/* -- the end ----------------------------------------------------------------------------------- */

static void finish(struct cluster_survey *survey, const struct answer *answer)
{
    cluster_tidy(survey->cluster);
    survey->done(survey->arg, answer);
}

static void report(struct cluster_survey *survey)
{
    static const struct answer granted = {.verdict = VERDICT_GRANTED};

    cluster_views_report(&survey->views, survey->each, survey->each_arg);
    finish(survey, &granted);
}

/* -- keys -------------------------------------------------------------------------------------- */

static void take_key(void *arg, const struct lock_view *view)
{
    struct cluster_survey *survey = arg;
    cluster_views_set(&survey->views, survey->next, view);
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
    char *pattern = as_pattern(survey->views.entries[survey->next].key);
    const char *patterns[] = {pattern};
    struct survey_request request = {patterns, 1, take_key, survey};

    store_survey(node, &request, until, done, done_arg);
    free(pattern);
}

static void key_answered(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;
    bool skipped = answer->cause == CAUSE_MISFIT && !survey->views.entries[survey->next].named;

    if (answer->verdict != VERDICT_GRANTED && !skipped) {
        finish(survey, answer);
        return;
    }
    survey->next++;
    ask_next_key(survey);
}

static void ask_next_key(struct cluster_survey *survey)
{
    const struct cluster_views *views = &survey->views;

    while (survey->next < views->count && views->entries[survey->next].view.key)
        survey->next++;
    if (survey->next == views->count) {
        report(survey);
        return;
    }
    char *name = key_in_store(survey->prefix, views->entries[survey->next].key);
    unsigned slot = cluster_slot(name);
    free(name);
    cluster_call(survey->cluster, slot, ask_key, survey, survey->until, survey->patient,
                 key_answered, survey);
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void take_found(void *arg, const struct lock_view *view)
{
    struct cluster_survey *survey = arg;

    cluster_views_add(&survey->views, view->key, false);
    cluster_views_set(&survey->views, survey->views.count - 1, view);
}

static void take_moved(void *arg, const char *key)
{
    struct cluster_survey *survey = arg;
    cluster_views_add(&survey->views, key, false);
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

    cluster_views_forget(&survey->views);
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
static void add_key(struct cluster_survey *survey, const char *pattern)
{
    char *key = mem_zeroed(strlen(pattern) + 1), *to = key;

    for (; *pattern; pattern++) {
        if (*pattern == '\\' && pattern[1])
            pattern++;
        *to++ = *pattern;
    }
    cluster_views_add(&survey->views, key, true);
    free(key);
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
            add_key(survey, pattern);
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
    cluster_views_free(&survey->views);
    free(survey->masters);
    free(survey->prefix);
    free(survey);
}
