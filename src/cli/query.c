/* Asks a store, and decides whether a question is asked again when it has not answered. It changes
 * its struct query and what the answer is written to. */
#include "cli/query.h"

#include <stdio.h>

#include "base/backoff.h"
#include "base/duration.h"
#include "base/mem.h"
#include "cli/say.h"
#include "lock/key.h"
#include "lock/lease.h"
#include "net/loop.h"

/* For the questions themselves, when the connection is up; there may be many locks to read. */
#define ANSWER_TIME (10 * NS_PER_SEC)

/* How long a store that has answered about a latch may be away. */
#define LATCH_OUTAGE_NS (30 * NS_PER_SEC)

bool query_open(struct query *query, const struct store_address *address, const char *who,
                char *fault, size_t size)
{
    *query = (struct query){.time_limit = address->connect_timeout + ANSWER_TIME,
                            .attempt = address->connect_timeout,
                            .who = who,
                            .server_wait = who ? address->server_wait : 0,
                            .kept = mem_zeroed(sizeof *query->kept)};
    query->loop = loop_new();
    query->store = store_open(query->loop, address, fault, size);
    return query->store != NULL;
}

static void close_store(struct query *query)
{
    if (query->store)
        store_close(query->store);
    query->store = NULL;
}

void query_close(struct query *query)
{
    if (query->has_outage)
        outage_free(&query->outage);
    close_store(query);
    if (query->loop)
        loop_free(query->loop);
    free(query->kept);
    *query = (struct query){0};
}

/* -- one question ------------------------------------------------------------------------------ */

/* Takes the answer to the question, and ends its loop. */
static void on_answer(void *arg, const struct answer *answer)
{
    struct query *query = arg;

    answer_keep(query->kept, answer);
    query->answered = true;
    loop_stop(query->loop);
}

/* Asks, and waits for the answer: until that moment, or until a callback stops the loop, which
 * closes the store. A later answer is not taken. */
static void ask_once(struct query *query, struct operation operation, struct moment until,
                     struct answer *answer)
{
    operation.until = until;
    operation.done = on_answer;
    operation.arg = query;
    if (operation.verb == VERB_SURVEY)
        lock_list_free(operation.survey->each_arg); /* the locks of an attempt that failed */
    query->answered = false;
    store_start(query->store, &operation);
    *answer = (struct answer){.verdict = VERDICT_UNKNOWN}; /* a callback may stop the loop */
    answer_await(query->loop, answer);
    if (query->answered)
        *answer = query->kept->answer;
    else
        close_store(query);
    if (query->answered && answer->verdict != VERDICT_UNKNOWN)
        outage_answered(&query->outage, moment_now());
}

/* -- a store that is away at the start ------------------------------------------------------- */

/* The store has not answered for a while: tells the user, while it is asked again. */
static void on_away(void *arg, const struct answer *why)
{
    const struct query *query = arg;

    if (why->said[0])
        say_detail("%s: the server said: %s", query->who, why->said);
    say_warning("%s: %s; trying again", query->who, why->text);
}

/* The store answers again. */
static void on_back(void *arg, int64_t after)
{
    const struct query *query = arg;

    say_warning("%s: the store is back after %s", query->who, DURATION_TEXT(after));
}

/* Begins the outage that all questions of a query share, at the first one. longest: ns that a store
 * may be away which has answered; 0: the next failure is final. */
static void ensure_outage(struct query *query, int64_t longest)
{
    static const struct outage_events events = {on_away, on_back};

    if (!query->has_outage)
        outage_begin(&query->outage, query->loop, moment_now(), query->server_wait, longest,
                     &events, query);
    query->has_outage = true;
}

/* Waits until that moment before another attempt. False: a callback ended the wait by loop_stop(),
 * as it may end a question; the answer is that of such a question then, and the store is closed. */
static bool pause_until(struct query *query, struct moment until, struct answer *answer)
{
    if (loop_run_for(query->loop, moment_until(moment_now(), until)) == 0)
        return true;
    *answer = (struct answer){.verdict = VERDICT_UNKNOWN};
    close_store(query);
    return false;
}

/* The effect of another attempt where an earlier one may have been executed. */
enum repetition {
    HARMS, /* it would be done twice */
    IS_HARMLESS,
    SETTLES_IT, /* its answer says whether the earlier one was executed */
    IS_WANTED,  /* the same, and it is wanted more than an error: a renewal, a release */
};

/* Whether the store has not answered to anything yet, and no attempt may have been executed
 * (unsure): then it may be away for as long as at the start. */
static bool is_at_start(const struct query *query, bool unsure)
{
    return !query->outage.contacted && !unsure;
}

/* Whether a question may be asked again after this answer: if it has failed, and the failure may
 * pass, or another attempt settles what was done. unsure: an attempt may have been executed. */
static bool may_ask_again(const struct query *query, enum repetition repetition, bool unsure,
                          struct moment now, const struct answer *answer)
{
    if (!query->store || answer->verdict != VERDICT_UNKNOWN)
        return false;
    /* Without a right, a script may have done a part, which a second one takes for the whole. */
    if (answer->cause == CAUSE_DENIED)
        return false;
    if (repetition == IS_WANTED && !is_at_start(query, unsure))
        return (unsure || answer->cause == CAUSE_NOT_READY) && answer->cause != CAUSE_UNFIT;
    if (repetition == HARMS && unsure)
        return false;
    bool settles = repetition == SETTLES_IT && answer->maybe_done;
    return outage_may_pass(&query->outage, now, answer) ||
           (settles && !moment_reached(query->outage.until, now));
}

/* Asks until there is an answer, or it may not be asked again: until the outage is given up, or
 * "end". attempt: ns for one. Returns whether an attempt without an answer may have been
 * executed. */
static bool ask_through_outage(struct query *query, struct operation operation,
                               enum repetition repetition, int64_t attempt, struct moment end,
                               struct answer *answer)
{
    bool again = true, unsure = false;

    while (again) {
        struct moment now = moment_now(), until = outage_limit(&query->outage, now, attempt);
        /* The last attempt may end a little later than "end". */
        ask_once(query, operation, moment_min(until, lease_last_call(now, end)), answer);
        now = moment_now();
        unsure |= answer->verdict == VERDICT_UNKNOWN && answer->maybe_done;
        again =
            may_ask_again(query, repetition, unsure, now, answer) && !moment_reached(end, now) &&
            pause_until(query, moment_min(outage_note(&query->outage, now, answer), end), answer);
    }
    return unsure;
}

void query_ask(struct query *query, struct operation operation, struct answer *answer)
{
    ensure_outage(query, 0);
    ask_through_outage(query, operation, HARMS, query->time_limit, MOMENT_NEVER, answer);
    if (answer->verdict == VERDICT_UNKNOWN)
        outage_add_length(&query->outage, moment_now(), answer);
}

/* -- questions ------------------------------------------------------------------------------- */

/* Keeps a lock that a survey has found, or one that cannot be read. */
static void keep_view(void *arg, const struct lock_view *view)
{
    struct lock_list *list = arg;

    lock_views_add(view->misfit ? &list->misfits : &list->locks, view);
}

/* Keeps the pause of a GLOB that a survey has found. */
static void keep_pause(void *arg, const struct lock_view *view)
{
    struct lock_list *list = arg;

    lock_views_add(&list->pauses, view);
}

/* Notes the minimum version that a survey has found. */
static void keep_minimum(void *arg, const char *version)
{
    struct lock_list *list = arg;

    snprintf(list->minimum, sizeof list->minimum, "%s", version);
}

/* Makes the answer of a survey a refusal, as one of its locks cannot be read; an answer that has
 * failed already stays. */
static void refuse_by(const struct lock_view *misfit, struct answer *answer)
{
    if (answer->verdict != VERDICT_GRANTED)
        return;
    *answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_MISFIT};
    snprintf(answer->text, sizeof answer->text, "%s: %s", misfit->key, misfit->misfit);
}

void lock_list_refuse(const struct lock_list *list, struct answer *answer)
{
    if (list->misfits.count > 0)
        refuse_by(list->misfits.views, answer);
}

/* Notes that the store is at work. A store that takes long to answer is not away. */
static void on_progress(void *arg)
{
    struct query *query = arg;

    outage_end(&query->outage);
}

void query_survey(struct query *query, const struct survey_request *request, struct lock_list *list,
                  struct answer *answer)
{
    struct survey_request whole = *request;

    lock_list_free(list);
    whole.each = keep_view;
    whole.each_arg = list;
    whole.paused = keep_pause;
    whole.minimum = keep_minimum;
    whole.heard = on_progress;
    whole.heard_arg = query;
    query_ask(query, (struct operation){.verb = VERB_SURVEY, .survey = &whole}, answer);
    if (answer->verdict == VERDICT_UNKNOWN)
        lock_views_free(&list->misfits); /* a caller that sees misfits takes the list for whole */
    /* The doctors' lock is shown to those who name it. */
    if (!request->latches && !survey_names(request, QUERY_TRIAL_KEY))
        lock_views_remove(&list->locks, QUERY_TRIAL_KEY);
    lock_views_sort(&list->locks);
    lock_views_sort(&list->misfits);
    lock_views_sort(&list->pauses);
    for (size_t i = 0; i < list->misfits.count; i++)
        if (survey_names(request, list->misfits.views[i].key))
            refuse_by(&list->misfits.views[i], answer);
}

const struct lock_view *query_read_lock(struct query *query, const char *key,
                                        struct lock_list *list, struct answer *answer)
{
    char *pattern FREED = key_to_pattern(key);
    const char *const patterns[] = {pattern};

    query_survey(query, &(struct survey_request){.patterns = patterns, .pattern_count = 1}, list,
                 answer);
    return list->locks.count > 0 ? list->locks.views : NULL;
}

void query_look(const struct store_address *address, const struct survey_request *request,
                struct lock_list *list, struct answer *answer)
{
    struct query query ENDED_BY(query_close) = {0};

    *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE};
    if (query_open(&query, address, NULL, answer->text, sizeof answer->text))
        query_survey(&query, request, list, answer);
}

/* -- what may be asked again after a lost answer --------------------------------------------- */

/* Asks something that is wanted more than an error (IS_WANTED), until there is an answer, or until
 * the time of the query is over; then *answer is the failure that says why. Returns whether an
 * attempt without an answer may have been executed. */
static bool ask_until_answered(struct query *query, struct operation operation,
                               struct answer *answer)
{
    struct moment end = moment_plus(moment_now(), query->time_limit);
    struct answer told = {0};
    bool unsure = false, retry = true;
    unsigned failures = 0;

    ensure_outage(query, 0);
    if (!query->outage.contacted)
        end = moment_max(end, query->outage.until);
    while (retry) {
        struct moment until = moment_plus(moment_now(), query->attempt);
        if (is_at_start(query, unsure))
            until = outage_limit(&query->outage, moment_now(), query->attempt);
        ask_once(query, operation, moment_min(end, until), answer);
        if (answer->verdict != VERDICT_UNKNOWN)
            return unsure;
        unsure |= answer->maybe_done;
        store_note_failure(&told, answer);
        struct moment now = moment_now(), again = backoff_next(&failures, now);
        bool at_start = is_at_start(query, unsure);
        retry = may_ask_again(query, IS_WANTED, unsure, now, answer) &&
                (at_start || !moment_reached(end, again));
        if (retry && at_start)
            again = outage_note(&query->outage, now, answer);
        if (retry)
            loop_run_for(query->loop, moment_until(now, again));
    }
    *answer = told;
    outage_add_length(&query->outage, moment_now(), answer);
    answer->maybe_done = unsure;
    return unsure;
}

void query_renew(struct query *query, const struct renew_request *request, struct answer *answer)
{
    ask_until_answered(query, (struct operation){.verb = VERB_RENEW, .renew = request}, answer);
}

/* Asks for something that can happen only once. absent: the cause of a refusal which, after an
 * attempt without an answer, shows that this was executed: the answer is GRANTED then. */
static void ask_for_change(struct query *query, struct operation operation, enum cause absent,
                           struct answer *answer)
{
    if (ask_until_answered(query, operation, answer) && answer->cause == absent &&
        !answer->refused.revoked)
        *answer = (struct answer){.verdict = VERDICT_GRANTED};
}

void query_release(struct query *query, const struct release_request *request,
                   struct answer *answer)
{
    ask_for_change(query, (struct operation){.verb = VERB_RELEASE, .release = request},
                   CAUSE_NOT_HOLDER, answer);
}

void query_adjust(struct query *query, const struct adjust_request *request, struct answer *answer)
{
    struct adjust_request whole = *request;

    whole.heard = on_progress;
    whole.heard_arg = query;
    ask_for_change(query, (struct operation){.verb = VERB_ADJUST, .adjust = &whole}, CAUSE_ABSENT,
                   answer);
}

void query_latch(struct query *query, const struct latch_request *request, struct moment end,
                 struct answer *answer)
{
    const struct operation operation = {.verb = VERB_LATCH, .latch = request};
    bool looks = request->verb == LATCH_LOOK || request->verb == LATCH_LIST;
    enum repetition repetition = looks ? IS_HARMLESS : SETTLES_IT;

    ensure_outage(query, query->attempt > LATCH_OUTAGE_NS ? query->attempt : LATCH_OUTAGE_NS);
    bool unsure = ask_through_outage(query, operation, repetition, query->attempt, end, answer);
    if (unsure && request->verb == LATCH_DELETE && answer->cause == CAUSE_ABSENT)
        *answer = (struct answer){.verdict = VERDICT_GRANTED};
    if (answer->verdict != VERDICT_UNKNOWN || !query->store)
        return;
    *answer = *outage_give_up(&query->outage, moment_now(), answer);
    answer->maybe_done = unsure;
}

void lock_list_free(struct lock_list *list)
{
    lock_views_free(&list->locks);
    lock_views_free(&list->misfits);
    lock_views_free(&list->pauses);
    *list = (struct lock_list){0};
}
