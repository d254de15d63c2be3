#include "store/cluster/survey.h"

#include <stdio.h>

#include "base/backoff.h"
#include "base/mem.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/views.h"

struct cluster_survey {
    struct loop *loop;
    struct cluster *cluster;
    const char *prefix;
    struct operation operation; /* its "until" is put off with each part that a node answers */
    struct moment retry_until;
    int64_t part_time; /* ns for each part */

    const char **globs; /* of the patterns */
    size_t glob_count;
    /* Keys to ask about one by one: first those that the patterns name; then those that had moved
     * to another node. */
    char **keys;
    size_t key_count, named_count;
    struct survey_request part; /* the question to a node */
    char *pattern;              /* of the key that it is asked about; NULL */
    struct lock_views views;    /* of all nodes */
    size_t *masters, master_count;
    size_t next; /* of the masters, and then of the keys */
    unsigned failures;
    struct loop_timer again;
};

static void finish_survey(struct cluster_survey *survey, const struct answer *answer)
{
    survey->operation.done(survey->operation.arg, answer);
}

/* -- what a node says -------------------------------------------------------------------------- */

/* Keeps what a node reports of a lock, until all have reported. */
static void keep_view(void *arg, const struct lock_view *view)
{
    struct cluster_survey *survey = arg;

    lock_views_add(&survey->views, view);
}

/* A master has answered a part: the survey has more time for the next. retry_until is not put off:
 * in a survey that begins anew, the masters that are there answer again and again. */
static void on_progress(void *arg)
{
    struct cluster_survey *survey = arg;

    survey->operation.until = moment_plus(loop_now(survey->loop), survey->part_time);
    if (survey->operation.survey->heard)
        survey->operation.survey->heard(survey->operation.survey->heard_arg);
}

/* A master has listed a key that has moved to another node: asks about it later, where it is. */
static void take_moved(void *arg, const char *key)
{
    struct cluster_survey *survey = arg;

    *MEM_APPEND(survey->keys, survey->key_count) = mem_strdup(key);
}

/* -- asking ------------------------------------------------------------------------------------ */

static void on_answer(void *arg, const struct answer *answer);

/* Asks the next master for the locks of the globs; after the masters, asks about the next key at
 * its node; after all keys, reports what was found. */
static void ask_next(struct cluster_survey *survey)
{
    struct survey_request *part = &survey->part;
    struct operation operation = {.verb = VERB_SURVEY,
                                  .survey = part,
                                  .until = survey->operation.until,
                                  .done = on_answer,
                                  .arg = survey};

    if (survey->next == survey->master_count + survey->key_count) {
        static const struct answer granted = {.verdict = VERDICT_GRANTED};
        lock_views_report(&survey->views, survey->operation.survey);
        lock_views_free(&survey->views);
        finish_survey(survey, &granted);
        return;
    }
    *part = *survey->operation.survey;
    part->each = keep_view;
    part->heard = on_progress;
    part->each_arg = part->heard_arg = survey;
    if (survey->next < survey->master_count) {
        part->patterns = survey->globs;
        part->pattern_count = survey->glob_count;
        part->elsewhere = take_moved;
        cluster_call_node(survey->cluster, survey->masters[survey->next], &operation);
    } else {
        const char *key = survey->keys[survey->next - survey->master_count];
        free(survey->pattern);
        survey->pattern = key_to_pattern(key);
        part->patterns = (const char *const *)&survey->pattern;
        part->pattern_count = 1;
        cluster_call(survey->cluster, cluster_slot_of_key(survey->prefix, key), &operation,
                     survey->retry_until);
    }
}

static void map_read(void *arg, const struct answer *answer);

/* A master is gone, and another node may have its slots by now: forgets all that masters have
 * answered, reads the map again, and asks the masters that are in it. */
static void begin_anew(struct loop_timer *timer)
{
    struct cluster_survey *survey = timer->owner;

    lock_views_free(&survey->views);
    while (survey->key_count > survey->named_count)
        free(survey->keys[--survey->key_count]);
    cluster_read_map(survey->cluster, survey->operation.until, map_read, survey);
}

/* Takes the answer of one node: asks the next one; or begins anew a little later, if a master fails
 * that may be replaced; or ends the survey. */
static void on_answer(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;

    if (answer->verdict == VERDICT_GRANTED) {
        survey->next++;
        ask_next(survey);
    } else if (survey->next < survey->master_count) {
        /* A node that is gone: in a moment another may be in its place. */
        struct moment now = loop_now(survey->loop);
        struct moment again = backoff_next(&survey->failures, now);
        if (cause_may_pass(answer->cause) && again.ns < survey->retry_until.ns)
            loop_arm(survey->loop, &survey->again, again);
        else
            finish_survey(survey, answer);
    } else {
        finish_survey(survey, answer);
    }
}

/* The map was read: asks its masters, one after the other; or the survey fails as the reading
 * has. */
static void map_read(void *arg, const struct answer *answer)
{
    struct cluster_survey *survey = arg;
    const struct cluster_map *map = cluster_map_of(survey->cluster);
    static const struct answer nowhere = {.verdict = VERDICT_UNKNOWN,
                                          .cause = CAUSE_NOT_READY,
                                          .text = "the Cluster names no node that could be asked"};

    if (answer->verdict != VERDICT_GRANTED) {
        finish_survey(survey, answer);
        return;
    }
    free(survey->masters);
    survey->masters = mem_zeroed(map->node_count * sizeof *survey->masters);
    survey->master_count = cluster_map_masters(map, survey->masters);
    survey->next = 0;
    if (survey->master_count > 0)
        ask_next(survey);
    else
        finish_survey(survey, &nowhere);
}

/* -- the whole --------------------------------------------------------------------------------- */

struct cluster_survey *cluster_survey_start(struct loop *loop, struct cluster *cluster,
                                            const char *prefix, const struct operation *operation,
                                            struct moment retry_until)
{
    struct cluster_survey *survey = mem_zeroed(sizeof *survey);
    const struct survey_request *request = operation->survey;
    size_t count = request->pattern_count;

    *survey = (struct cluster_survey){.loop = loop,
                                      .cluster = cluster,
                                      .prefix = prefix,
                                      .operation = *operation,
                                      .retry_until = retry_until,
                                      .part_time = moment_until(loop_now(loop), operation->until)};
    survey->again = (struct loop_timer){.fire = begin_anew, .owner = survey};
    survey->globs = mem_zeroed((count + 1) * sizeof *survey->globs);
    for (size_t i = 0; i < count; i++) {
        if (key_is_glob(request->patterns[i]))
            survey->globs[survey->glob_count++] = request->patterns[i];
        else
            *MEM_APPEND(survey->keys, survey->key_count) = key_from_pattern(request->patterns[i]);
    }
    survey->named_count = survey->key_count;
    if (survey->glob_count > 0 || count == 0)
        cluster_read_map(cluster, operation->until, map_read, survey);
    else
        ask_next(survey);
    return survey;
}

void cluster_survey_free(struct cluster_survey *survey)
{
    if (!survey)
        return;
    loop_disarm(survey->loop, &survey->again);
    for (size_t i = 0; i < survey->key_count; i++)
        free(survey->keys[i]);
    free(survey->keys);
    free(survey->globs);
    free(survey->pattern);
    lock_views_free(&survey->views);
    free(survey->masters);
    free(survey);
}
