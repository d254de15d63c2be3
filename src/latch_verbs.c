/* What rlock latch does, and what it says about it. */
#include "latch_verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "latch_run.h"
#include "render_latch.h"

/* How long a success is tried to be counted with a store that is out of reach. */
#define COUNT_PATIENCE_NS (30 * NS_PER_SEC)

/* -- what is said about how it ended --------------------------------------------------------- */

static int refused(const struct latch *latch, const struct answer *answer, bool plain)
{
    if (answer->cause == CAUSE_ABSENT && !plain) {
        command_error(latch->command, "%s: no such latch", latch->key);
        say_hint("rlock latch set %s N", latch->key);
    } else if (status_of_cause(answer->cause) == STATUS_NO && plain) {
        say_warning("%s: %s: %s", latch->command->name, latch->key, answer->text);
    } else {
        command_error(latch->command, "%s: %s", latch->key, answer->text);
    }
    return status_of_cause(answer->cause);
}

static int closed(const struct latch *latch, const struct answer *answer)
{
    const struct latch_state *state = &answer->latch;

    if (answer->verdict == VERDICT_GRANTED)
        say_warning("%s: %s: not open: %" PRId64 " of %" PRId64 " left", latch->command->name,
                    latch->key, state->left, state->number);
    else
        say_warning("%s: %s: not open: no such latch was set", latch->command->name, latch->key);
    return STATUS_NOT_ACQUIRED;
}

/* plain: a latch that is not there, or is, is a plain no, which the status tells to who asked for
 * quiet. */
static int judge(const struct latch *latch, bool plain)
{
    const struct errand_end *end = &latch->session.end;

    switch (end->ending) {
    case ERRAND_DONE: return STATUS_OK;
    case ERRAND_REFUSED: return refused(latch, &end->answer, plain);
    case ERRAND_CLOSED: return closed(latch, &end->answer);
    case ERRAND_VANISHED:
        command_error(latch->command, "%s: vanished: deleted, expired or lost while waited for",
                      latch->key);
        return STATUS_NO;
    case ERRAND_FAILED: break;
    }
    return command_refused(latch->command, &end->answer);
}

/* -- the verbs ------------------------------------------------------------------------------- */

static struct errand_plan plan_of(const struct latch *latch, enum latch_verb verb)
{
    return (struct errand_plan){
        .request = {.key = latch->key, .verb = verb, .word = NULL, .number = latch->number},
        .connect_timeout = latch->settings.address.connect_timeout};
}

static struct errand_plan plan_count(const struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_COUNT);

    plan.request.id = latch->id ? latch->id : latch->word;
    plan.request.unnamed = !latch->id;
    return plan;
}

int latch_set(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_SET);

    plan.request.word = latch->word;
    plan.request.ttl = latch->ttl;
    latch_session_do(&latch->session, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK)
        say_detail("%s: set to %" PRId64, latch->key, latch->number);
    return status;
}

int latch_count_down(struct latch *latch)
{
    struct errand_plan plan = plan_count(latch);
    const struct latch_state *state = &latch->session.end.answer.latch;

    latch_session_do(&latch->session, &plan);
    int status = judge(latch, false);
    if (status != STATUS_OK) {
        if (latch->session.end.answer.maybe_done)
            say_warning("%s: it may have been counted all the same", latch->key);
        return status;
    }
    if (!state->counted)
        say_detail("%s: nothing was counted: %s", latch->key,
                   state->left ? "that id was counted before" : "it is open already");
    if (say_verbosity() != SAY_QUIET)
        printf("%" PRId64 "\n", state->left);
    return command_flush();
}

int latch_delete(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_DELETE);

    latch_session_do(&latch->session, &plan);
    return judge(latch, true);
}

int latch_show(struct latch *latch)
{
    struct latch_ids ids = {0};
    struct errand_plan plan = plan_of(latch, LATCH_LIST);
    const struct latch_state *state = &latch->session.end.answer.latch;
    struct json_library json;
    char fault[256];

    if (latch->json && !json_load(&json, fault, sizeof fault)) {
        command_error(latch->command, "%s", fault);
        return STATUS_SYSTEM;
    }
    plan.request.each = latch_ids_add;
    plan.request.each_arg = &ids;
    latch_session_do(&latch->session, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK && say_verbosity() != SAY_QUIET) {
        if (latch->json)
            render_latch_json(stdout, &json, latch->key, state, &ids);
        else
            render_latch(stdout, latch->key, state, &ids);
        status = command_flush();
    }
    latch_ids_free(&ids);
    return status == STATUS_OK && state->left ? STATUS_NOT_ACQUIRED : status;
}

static int catch_signals(struct latch *latch)
{
    if (latch_session_catch(&latch->session))
        return STATUS_OK;
    command_error(latch->command, "the system refuses: %s", strerror(errno));
    return STATUS_SYSTEM;
}

int latch_wait(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_LOOK);
    int64_t wait = latch->settings.wait;
    int status = catch_signals(latch);

    plan.until_open = true;
    plan.wait = wait != 0;
    plan.wait_until = wait == WAIT_FOREVER ? MOMENT_NEVER : moment_plus(moment_now(), wait);
    if (status != STATUS_OK || !latch_session_do(&latch->session, &plan))
        return status;
    return judge(latch, false);
}

/* Only on the latch that was there before. */
static int count_success(struct latch *latch, const char *word)
{
    struct errand_plan plan = plan_count(latch);
    struct answer *answer = &latch->session.end.answer;

    plan.request.word = word;
    plan.patience = COUNT_PATIENCE_NS;
    if (!latch_session_do(&latch->session, &plan)) {
        command_error(latch->command, "%s: told to end before it was counted", latch->key);
        return STATUS_OK;
    }
    if (answer->cause == CAUSE_ABSENT) {
        answer->cause = CAUSE_CHANGED;
        snprintf(answer->text, sizeof answer->text, "the latch vanished while the command ran");
    }
    int status = judge(latch, false);
    if (status == STATUS_OK)
        say_detail("%s: %" PRId64 " of %" PRId64 " left", latch->key, answer->latch.left,
                   answer->latch.number);
    else
        say_warning("%s: the command succeeded, but %s", latch->key,
                    answer->maybe_done ? "may not have been counted" : "was not counted");
    return status;
}

static int perform(struct latch *latch, const char *word)
{
    struct environment environment;
    struct latch_run run = {.command = latch->arguments.command};

    environment_make(&environment, environ, NULL, latch->keep_credentials);
    run.environment = &environment;
    latch_run(&run, &latch->session);
    environment_free(&environment);
    latch->session.signal = run.signal;
    if (run.typed)
        kill(0, run.typed);
    if (run.signal == 0 && run.status == 0)
        return count_success(latch, word);
    return run.status;
}

/* Whether there is such a latch is found out before the command is run. */
int latch_run_command(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_LOOK);
    char word[LATCH_WORD_SIZE];
    int status = catch_signals(latch);

    if (status != STATUS_OK || !latch_session_do(&latch->session, &plan))
        return status;
    if ((status = judge(latch, false)) != STATUS_OK)
        return status;
    memcpy(word, latch->session.end.answer.latch.word, sizeof word);
    return perform(latch, word);
}
