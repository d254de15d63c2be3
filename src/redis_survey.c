/* SCAN and inspect. */
#include "redis_survey.h"
#include "key.h"
#include "mem.h"
#include "redis_answer.h"
#include "redis_error.h"
#include "redis_link.h"
#include "scripts.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#define PAGE 100

/* One lock to read. */
struct entry {
    char *name; /* in the store */
    bool named; /* asked for by its key: reported even when free */
};

struct redis_survey {
    struct redis_link *link;
    char *prefix; /* NULL: any */
    void (*each)(void *, const struct lock_view *);
    void *each_arg;
    char **globs; /* as SCAN wants them, over names in the store */
    size_t glob_count, glob_next;
    char cursor[24];
    bool scanning; /* the batch under way is a SCAN */
    struct entry *entries;
    size_t entry_count, entry_next, asked;
    bool sorted;
    bool whole_script;  /* the server does not know inspect.lua by its digest */
    bool current_named; /* while a view is reported */
    bool asking;        /* each question is preceded by ASKING */
    void (*elsewhere)(void *, const char *);
    void *elsewhere_arg;
};

static void add_entry(struct redis_survey *survey, char *name, bool named)
{
    survey->entries =
        mem_checked(realloc(survey->entries, (survey->entry_count + 1) * sizeof *survey->entries));
    survey->entries[survey->entry_count++] = (struct entry){name, named};
    survey->sorted = false;
}

/* PREFIX:{GLOB}, the prefix taken literally. */
static char *store_glob(const char *prefix, const char *glob)
{
    if (!prefix)
        return mem_strdup("*:{*}");
    char *out = mem_zeroed(2 * strlen(prefix) + strlen(glob) + 4);
    char *to = out;

    for (const char *from = prefix; *from; from++) {
        if (strchr("*?[]\\^-", *from))
            *to++ = '\\';
        *to++ = *from;
    }
    sprintf(to, ":{%s}", glob);
    return out;
}

static void add_glob(struct redis_survey *survey, const char *glob)
{
    survey->globs =
        mem_checked(realloc(survey->globs, (survey->glob_count + 1) * sizeof *survey->globs));
    survey->globs[survey->glob_count++] = store_glob(survey->prefix, glob);
}

/* What a lock found in the store is reported as; NULL if it is none of ours. The caller frees. */
static char *name_of(const struct redis_survey *survey, const char *name)
{
    return survey->prefix ? key_from_store(survey->prefix, name) : mem_strdup(name);
}

/* A key written as a pattern: a\*b is a*b. */
static void add_key(struct redis_survey *survey, const char *pattern)
{
    char *key = mem_zeroed(strlen(pattern) + 1), *to = key;

    for (; *pattern; pattern++) {
        if (*pattern == '\\' && pattern[1])
            pattern++;
        *to++ = *pattern;
    }
    add_entry(survey, key_in_store(survey->prefix, key), true);
    free(key);
}

struct redis_survey *redis_survey_new(struct redis_link *link, const char *prefix,
                                      const struct survey_request *request)
{
    struct redis_survey *survey = mem_zeroed(sizeof *survey);

    survey->link = link;
    survey->prefix = prefix ? mem_strdup(prefix) : NULL;
    survey->each = request->each;
    survey->each_arg = request->each_arg;
    strcpy(survey->cursor, "0");
    if (request->pattern_count == 0)
        add_glob(survey, "*");
    for (size_t i = 0; i < request->pattern_count; i++) {
        const char *pattern = request->patterns[i];
        if (key_is_glob(pattern))
            add_glob(survey, pattern);
        else
            add_key(survey, pattern);
    }
    return survey;
}

void redis_survey_at_node(struct redis_survey *survey, bool asking,
                          void (*elsewhere)(void *arg, const char *key), void *arg)
{
    survey->asking = asking;
    survey->elsewhere = elsewhere;
    survey->elsewhere_arg = arg;
}

void redis_survey_free(struct redis_survey *survey)
{
    for (size_t i = 0; i < survey->glob_count; i++)
        free(survey->globs[i]);
    for (size_t i = 0; i < survey->entry_count; i++)
        free(survey->entries[i].name);
    free(survey->globs);
    free(survey->entries);
    free(survey->prefix);
    free(survey);
}

/* By name; one that was asked for by name first among its doubles. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = strcmp(left->name, right->name);

    return order ? order : (int)right->named - (int)left->named;
}

/* Sorts, and drops doubles: SCAN may report a key twice, globs may overlap. */
static void tidy(struct redis_survey *survey)
{
    size_t kept = 0;

    if (survey->entry_count > 0)
        qsort(survey->entries, survey->entry_count, sizeof *survey->entries, compare_entries);
    for (size_t i = 0; i < survey->entry_count; i++) {
        if (kept > 0 && strcmp(survey->entries[kept - 1].name, survey->entries[i].name) == 0)
            free(survey->entries[i].name);
        else
            survey->entries[kept++] = survey->entries[i];
    }
    survey->entry_count = kept;
    survey->sorted = true;
}

static void ask_scan(struct redis_survey *survey, struct moment until)
{
    const char *scan[] = {"SCAN",  survey->cursor, "MATCH", survey->globs[survey->glob_next],
                          "COUNT", "1000"};

    survey->scanning = true;
    redis_link_add(survey->link, 6, scan, NULL);
    redis_link_send(survey->link, 1, 0, until);
}

static void ask_page(struct redis_survey *survey, struct moment until)
{
    size_t left = survey->entry_count - survey->entry_next;
    const char *verb = survey->whole_script ? "EVAL" : "EVALSHA";
    const char *script = survey->whole_script ? script_inspect.text : script_inspect.sha1;

    survey->scanning = false;
    survey->asked = left < PAGE ? left : PAGE;
    for (size_t i = 0; i < survey->asked; i++) {
        const char *inspect[] = {verb, script, "1", survey->entries[survey->entry_next + i].name};
        const char *asking[] = {"ASKING"};
        if (survey->asking)
            redis_link_add(survey->link, 1, asking, NULL);
        redis_link_add(survey->link, 4, inspect, NULL);
    }
    redis_link_send(survey->link, survey->asked * (survey->asking + 1u), 0, until);
}

bool redis_survey_ask(struct redis_survey *survey, struct moment until)
{
    if (survey->glob_next < survey->glob_count) {
        ask_scan(survey, until);
        return true;
    }
    if (!survey->sorted)
        tidy(survey);
    if (survey->entry_next == survey->entry_count)
        return false;
    ask_page(survey, until);
    return true;
}

static bool hear_scan(struct redis_survey *survey, const redisReply *reply, struct answer *answer)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING || reply->element[0]->len > 20 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY) {
        if (reply->type == REDIS_REPLY_ERROR)
            redis_error_answer(reply->str, answer);
        else
            redis_error_senseless(answer);
        return false;
    }
    const redisReply *names = reply->element[1];
    for (size_t i = 0; i < names->elements; i++) {
        char *key = names->element[i]->type == REDIS_REPLY_STRING
                        ? name_of(survey, names->element[i]->str)
                        : NULL;
        if (key)
            add_entry(survey, mem_strdup(names->element[i]->str), false);
        free(key);
    }
    strcpy(survey->cursor, reply->element[0]->str);
    if (strcmp(survey->cursor, "0") == 0)
        survey->glob_next++;
    return true;
}

static void report(void *arg, const struct lock_view *view)
{
    struct redis_survey *survey = arg;

    if (survey->current_named || view->holder_count || view->waiter_count)
        survey->each(survey->each_arg, view);
}

static bool lacks_script(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR &&
           redis_error_class(reply->str) == REDIS_ERROR_NOSCRIPT;
}

static bool hear_entry(struct redis_survey *survey, const struct entry *entry,
                       const redisReply *reply, struct answer *answer)
{
    char *key = name_of(survey, entry->name);

    survey->current_named = entry->named;
    redis_answer_inspect(reply, key, report, survey, answer);
    bool skipped = answer->cause == CAUSE_MISFIT && !entry->named;
    bool moved = survey->elsewhere && answer->moved[0];
    if (moved)
        survey->elsewhere(survey->elsewhere_arg, key);
    free(key);
    return answer->verdict == VERDICT_GRANTED || skipped || moved;
}

static bool hear_page(struct redis_survey *survey, redisReply *const *replies, size_t count,
                      struct answer *answer)
{
    size_t step = survey->asking + 1u;

    /* Keys that are elsewhere by now are refused first, whether it knows the script or not. */
    for (size_t i = step - 1; i < count && !survey->whole_script; i += step) {
        if (lacks_script(replies[i])) {
            survey->whole_script = true;
            return true;
        }
    }
    for (size_t i = 0; i < survey->asked; i++) {
        if (!hear_entry(survey, &survey->entries[survey->entry_next + i],
                        replies[i * step + step - 1], answer))
            return false;
    }
    survey->entry_next += survey->asked;
    return true;
}

bool redis_survey_hear(struct redis_survey *survey, redisReply *const *replies, size_t count,
                       struct answer *answer)
{
    return survey->scanning ? hear_scan(survey, replies[0], answer)
                            : hear_page(survey, replies, count, answer);
}
