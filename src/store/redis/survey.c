/* A survey of locks: SCAN finds the KEYs, and a script reads each one, in several calls if it has
 * many waiters. */
#include "store/redis/survey.h"
#include "base/mem.h"
#include "lock/key.h"
#include "rules/answer.h"
#include "rules/arguments.h"
#include "rules/error.h"
#include "rules/latch.h"
#include "rules/reply.h"
#include "rules/scripts.h"
#include "store/redis/session.h"
#include "store/views.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>

/* How many locks a batch asks about. */
#define PAGE 100

/* One lock to read. */
struct entry {
    char *name;             /* in the store */
    bool named;             /* asked for by its key: reported even when free */
    struct redis_rest rest; /* of its queue, not read yet */
    struct lock_views read; /* one view, if there is a rest */
};

struct redis_survey {
    struct redis_session *session;
    const char *prefix;            /* NULL: any */
    const char *pauses;            /* the key of those of GLOBs; NULL: none */
    const char *grace;             /* the key that tells of it; NULL: none */
    struct survey_request request; /* without its patterns */
    char runs[16];
    bool marking; /* locks are marked as pauses say, in place of being reported */
    bool marked;  /* one was */
    char **globs; /* as SCAN wants them, over names in the store */
    size_t glob_count, glob_next;
    char cursor[24];
    bool scanning; /* the batch under way is a SCAN */
    struct entry *entries;
    size_t entry_count, entry_next, asked;
    size_t rest_next; /* up to entry_next, from here on a rest may be left */
    bool in_rest;     /* the batch under way asks for one */
    bool sorted;
    bool whole_script; /* the server does not know the script by its digest */
    bool asking;       /* each question is preceded by ASKING */
};

enum asked_by { BY_NAME, BY_GLOB };

/* Adds a name in the store, which the survey now owns, to those that are asked about;
 * sort_entries() drops doubles. */
static void add_entry(struct redis_survey *survey, char *name, enum asked_by by)
{
    *MEM_APPEND(survey->entries, survey->entry_count) =
        (struct entry){.name = name, .named = by == BY_NAME};
    survey->sorted = false;
}

/* Adds PREFIX:{GLOB}, the prefix taken literally, to what SCAN is asked for. */
static void add_glob(struct redis_survey *survey, const char *glob)
{
    *MEM_APPEND(survey->globs, survey->glob_count) = redis_glob_in_store(survey->prefix, glob);
}

/* Returns the KEY to report for a name in the store; NULL if it is not a lock of rlock's. The
 * caller frees it. */
static char *key_of(const struct redis_survey *survey, const char *name)
{
    return survey->prefix ? key_from_store(survey->prefix, name) : mem_strdup(name);
}

struct redis_survey *redis_survey_new(struct redis_session *session, const char *prefix,
                                      const struct redis_terms *terms,
                                      const struct survey_request *request, enum survey_task task)
{
    struct redis_survey *survey = mem_zeroed(sizeof *survey);

    survey->session = session;
    survey->prefix = prefix;
    survey->pauses = terms->pauses;
    survey->grace = terms->pauses ? terms->marker : NULL; /* where the locks are */
    survey->request = *request;
    survey->marking = task == SURVEY_MARKS;
    survey->asking = task == SURVEY_LOOKS_ASKING;
    snprintf(survey->runs, sizeof survey->runs, "%u", request->runs);
    strcpy(survey->cursor, "0");
    if (request->pattern_count == 0)
        add_glob(survey, "*");
    for (size_t i = 0; i < request->pattern_count; i++) {
        const char *pattern = request->patterns[i];
        if (key_is_glob(pattern)) {
            add_glob(survey, pattern);
        } else {
            char *key = key_from_pattern(pattern);
            add_entry(survey, key_in_store(survey->prefix, key), BY_NAME);
            free(key);
        }
    }
    return survey;
}

bool redis_survey_has_marked(const struct redis_survey *survey)
{
    return survey->marked;
}

void redis_survey_free(struct redis_survey *survey)
{
    if (!survey)
        return;
    for (size_t i = 0; i < survey->glob_count; i++)
        free(survey->globs[i]);
    for (size_t i = 0; i < survey->entry_count; i++) {
        free(survey->entries[i].name);
        lock_views_free(&survey->entries[i].read);
    }
    free(survey->globs);
    free(survey->entries);
    free(survey);
}

/* For qsort(): by name; among doubles, the one that was asked for by name first. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = strcmp(left->name, right->name);

    return order ? order : (int)right->named - (int)left->named;
}

/* Sorts, and drops doubles: SCAN may report a key twice, globs may overlap. */
static void sort_entries(struct redis_survey *survey)
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

/* Reports the pause of a GLOB, if it may hold for a lock that the survey asks for. arg: the
 * survey. */
static void tell_pause(void *arg, const struct lock_view *pause)
{
    const struct redis_survey *survey = arg;
    char *glob = redis_glob_in_store(survey->prefix, pause->key);
    bool meets = false;

    for (size_t i = 0; !meets && i < survey->glob_count; i++)
        meets = key_globs_may_meet(survey->globs[i], glob);
    if (meets)
        survey->request.paused(survey->request.each_arg, pause);
    free(glob);
}

/* Sends the batch, with any replies due by "until". A server that is silent on one connection is
 * asked on another, and has all the time then. */
static void send_commands(struct redis_survey *survey, size_t replies, struct moment until)
{
    redis_session_send_ahead(survey->session, replies, until, moment_until(moment_now(), until));
}

/* Adds the call about an entry: a look at a lock, the rest of its queue, a mark, or a latch. */
static void add_look(struct redis_survey *survey, const struct entry *entry)
{
    const struct script *script = survey->request.latches ? &script_latch
                                  : survey->marking       ? &script_adjust
                                                          : &script_inspect;
    const char *name = entry->name;
    struct redis_call call = {.whole = survey->whole_script};
    char from[24], to[24];

    redis_call_begin(&call, script, NULL, &name, 1);
    if (entry->rest.from > 0) {
        snprintf(from, sizeof from, "%" PRId64, entry->rest.from);
        snprintf(to, sizeof to, "%" PRId64, entry->rest.to);
        redis_call_set(&call, "from", from);
        redis_call_set(&call, "to", to);
    } else if (survey->request.latches || survey->marking) {
        redis_call_set(&call, "what", survey->request.latches ? "look" : "globs");
    } else {
        redis_call_set(&call, "runs", survey->runs);
    }
    if (!survey->request.latches)
        redis_call_set(&call, "pauses", survey->pauses);
    if (!survey->request.latches && !survey->marking)
        redis_call_set(&call, "epoch", survey->grace);
    if (survey->asking)
        REDIS_SESSION_ADD(survey->session, "ASKING");
    redis_session_add_call(survey->session, &call);
    redis_call_drop(&call);
}

/* Returns the first of the entries that the batch under way asks about: one with a rest, or those
 * that were not read yet. */
static struct entry *first_asked(const struct redis_survey *survey)
{
    return &survey->entries[survey->in_rest ? survey->rest_next : survey->entry_next];
}

/* Returns how many replies come about an entry: the last one is that of the call, and behind
 * ASKING there is one before it. */
static size_t replies_each(const struct redis_survey *survey)
{
    return survey->asking ? 2 : 1;
}

/* Asks about the next entries, so many, in one batch. */
static void ask_looks(struct redis_survey *survey, size_t count, struct moment until)
{
    survey->scanning = false;
    survey->asked = count;
    for (size_t i = 0; i < count; i++)
        add_look(survey, first_asked(survey) + i);
    send_commands(survey, count * replies_each(survey), until);
}

bool redis_survey_ask(struct redis_survey *survey, struct moment until)
{
    if (survey->glob_next < survey->glob_count) {
        bool pauses = survey->pauses && survey->request.paused;
        if (pauses) { /* field "p" has those of GLOBs, "v" the minimum version */
            REDIS_SESSION_ADD(survey->session, "TIME");
            REDIS_SESSION_ADD(survey->session, "HMGET", survey->pauses, "p", "v");
        }
        survey->scanning = true;
        REDIS_SESSION_ADD(survey->session, "SCAN", survey->cursor, "MATCH",
                          survey->globs[survey->glob_next], "COUNT", "1000");
        send_commands(survey, pauses ? 3 : 1, until);
        return true;
    }
    if (!survey->sorted)
        sort_entries(survey);
    size_t left = survey->entry_count - survey->entry_next;
    while (survey->rest_next < survey->entry_next &&
           survey->entries[survey->rest_next].rest.from == 0)
        survey->rest_next++;
    survey->in_rest = survey->rest_next < survey->entry_next;
    if (survey->in_rest)
        ask_looks(survey, 1, until);
    else if (left > 0)
        ask_looks(survey, left < PAGE ? left : PAGE, until);
    return survey->in_rest || left > 0;
}

/* Takes a page of SCAN: notes the names that are locks' (others are below the prefix by chance),
 * and after the last page, continues with the next glob. False: the reply cannot be read, and
 * *answer says why. */
static bool hear_scan(struct redis_survey *survey, const redisReply *reply, struct answer *answer)
{
    const char *cursor = redis_reply_string(reply, 0);
    const redisReply *names = redis_reply_list(reply, 1);

    if (!cursor || strlen(cursor) >= sizeof survey->cursor || !names) {
        if (reply->type == REDIS_REPLY_ERROR)
            redis_error_answer(reply->str, answer);
        else
            redis_error_senseless(answer);
        return false;
    }
    for (size_t i = 0; i < names->elements; i++) {
        const char *name = redis_reply_string(names, i);
        char *key = name ? key_of(survey, name) : NULL;
        if (key)
            add_entry(survey, mem_strdup(name), BY_GLOB);
        free(key);
    }
    strcpy(survey->cursor, cursor);
    if (strcmp(survey->cursor, "0") == 0)
        survey->glob_next++;
    return true;
}

/* Keeps a lock, to be reported when the rest of its queue has been read. */
static void keep_lock(void *arg, const struct lock_view *view)
{
    struct entry *entry = arg;

    if (entry->read.count > 0)
        lock_views_add_waiters(&entry->read, view);
    else
        lock_views_add(&entry->read, view);
}

/* Takes the reply about a lock, or about one more part of its queue, and makes *answer of it. When
 * nothing is left to ask for, the lock is reported, unless it is free and neither named nor wanted
 * all the same (idle). */
static void hear_lock(struct redis_survey *survey, struct entry *entry, const char *key,
                      const redisReply *reply, struct answer *answer)
{
    redis_answer_inspect(reply, key, keep_lock, entry, answer);
    bool granted = answer->verdict == VERDICT_GRANTED;
    entry->rest = granted ? redis_answer_rest(reply) : (struct redis_rest){0};
    if (!granted) {
        lock_views_free(&entry->read);
    } else if (entry->rest.from == 0) { /* no part of its queue is left to ask for */
        lock_views_order_waiters(&entry->read);
        for (size_t i = 0; i < entry->read.count; i++) {
            const struct lock_view *view = &entry->read.views[i];
            bool idle = survey->request.idle && view->fence > 0;
            bool busy = view->holder_count || view->waiter_count || view->pause.owner[0];
            if (entry->named || busy || idle)
                survey->request.each(survey->request.each_arg, view);
        }
        lock_views_free(&entry->read);
    }
}

/* Takes the reply about a latch, makes *answer of it, and reports the latch, if it exists. */
static void hear_latch(struct redis_survey *survey, const char *key, const redisReply *reply,
                       struct answer *answer)
{
    int64_t now_ms;

    redis_latch_answer(reply, NULL, NULL, answer, &now_ms);
    if (answer->verdict == VERDICT_GRANTED)
        survey->request.each(survey->request.each_arg,
                             &(struct lock_view){.key = key, .latch = answer->granted.latch});
    else if (answer->cause == CAUSE_ABSENT)
        *answer = (struct answer){.verdict = VERDICT_GRANTED};
}

/* Takes the reply to the mark of a lock, and makes *answer of it. A key that is not a lock any more
 * need not be marked: GRANTED. */
static void hear_mark(struct redis_survey *survey, const redisReply *reply, struct answer *answer)
{
    struct redis_extra extra;

    redis_answer_script(reply, answer, &extra);
    survey->marked |= answer->verdict == VERDICT_GRANTED;
    if (answer->cause == CAUSE_ABSENT)
        *answer = (struct answer){.verdict = VERDICT_GRANTED};
    else if (answer->verdict == VERDICT_REFUSED && answer->cause != CAUSE_MISFIT)
        redis_error_senseless(answer);
}

/* Whether the reply tells of a key that a later rlock has made: a survey that left it out would be
 * taken for complete. */
static bool is_later(const struct redis_survey *survey, const redisReply *reply)
{
    const char *known = survey->request.latches ? "latch/1" : "lock/1";
    /* The reply is {"MISFIT", the server's clock, KIND}. */
    const char *kind = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 2) : NULL;
    char text[80]; /* not used */

    return !survey->marking && kind && redis_newer_layout(kind, known, text, sizeof text);
}

/* Takes the reply about one key. False: the survey ends with *answer. A key that is something else
 * than a lock (MISFIT), or has moved to another node, does not end it. */
static bool hear_entry(struct redis_survey *survey, struct entry *entry, const redisReply *reply,
                       struct answer *answer)
{
    char *key = key_of(survey, entry->name);

    if (survey->marking)
        hear_mark(survey, reply, answer);
    else if (survey->request.latches)
        hear_latch(survey, key, reply, answer);
    else
        hear_lock(survey, entry, key, reply, answer);
    bool misfit = answer->cause == CAUSE_MISFIT;
    if (misfit && (entry->named || is_later(survey, reply)))
        survey->request.each(survey->request.each_arg,
                             &(struct lock_view){.key = key, .misfit = answer->text});
    bool moved = survey->request.elsewhere && reply->type == REDIS_REPLY_ERROR &&
                 redis_error_is_redirection(reply->str);
    if (moved)
        survey->request.elsewhere(survey->request.each_arg, key);
    free(key);
    return answer->verdict == VERDICT_GRANTED || misfit || moved;
}

/* Takes the replies about a page of locks. False: the survey ends with *answer. If the server lacks
 * the script, the page is asked for again, with the script itself. */
static bool hear_page(struct redis_survey *survey, redisReply *const *replies, size_t count,
                      struct answer *answer)
{
    size_t step = replies_each(survey);

    /* All replies are looked at: a node refuses keys of other nodes before it looks for the
     * script. */
    for (size_t i = step - 1; i < count && !survey->whole_script; i += step) {
        if (replies[i]->type == REDIS_REPLY_ERROR &&
            redis_error_class(replies[i]->str) == REDIS_ERROR_NOSCRIPT) {
            survey->whole_script = true;
            return true;
        }
    }
    for (size_t i = 0; i < survey->asked; i++) {
        if (!hear_entry(survey, first_asked(survey) + i, replies[i * step + step - 1], answer))
            return false;
    }
    if (!survey->in_rest)
        survey->entry_next += survey->asked;
    return true;
}

bool redis_survey_hear(struct redis_survey *survey, redisReply *const *replies, size_t count,
                       struct answer *answer)
{
    if (survey->scanning && count > 1) { /* the replies to TIME and HMGET stand before SCAN's */
        /* A user who may not read the pauses hears of none. */
        int64_t us = redis_reply_time(replies[0]);
        if (us >= 0)
            redis_answer_pauses(replies[1], us / 1000, tell_pause, survey);
        const char *minimum =
            replies[1]->type == REDIS_REPLY_ARRAY ? redis_reply_string(replies[1], 1) : NULL;
        if (minimum && survey->request.minimum)
            survey->request.minimum(survey->request.each_arg, minimum);
        survey->request.paused = NULL;
    }
    bool good = survey->scanning ? hear_scan(survey, replies[count - 1], answer)
                                 : hear_page(survey, replies, count, answer);

    if (good && survey->request.heard)
        survey->request.heard(survey->request.heard_arg);
    return good;
}
