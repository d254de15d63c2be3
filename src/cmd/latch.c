/* rlock latch: let jobs wait until others, on many hosts, are done.
 *
 * Each verb does one operation on the latch, or two, one after the other; `run` executes its
 * command between two. While an operation waits, a line says why. */
#include "cmd/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "cli/run_messages.h"
#include "cmd/latch_operation.h"
#include "cmd/render_latch.h"
#include "lock/own_identity.h"
#include "lock/owner.h"
#include "run/environment.h"
#include "run/fenced.h"
#include "store/url.h"

#define TTL_DEFAULT_NS (INT64_C(86400) * NS_PER_SEC)
#define TTL_LEAST_NS   (1 * NS_PER_SEC)

enum { OPTION_TTL = OPTION_OTHER, OPTION_ID, OPTION_JSON };

static const struct option_spec options[] = {
    {.id = OPTION_TTL,
     .name = "ttl",
     .argument = "DUR",
     .help = "set: the latch expires after DUR, open or not (default 1d, at least 1s)"},
    {.id = OPTION_ID,
     .name = "id",
     .argument = "ID",
     .help = "count-down, run: count only once for ID, a word like KEY"},
    NO_WAIT_AS("wait: do not wait, end with 75"),
    SETTING_AS(WAIT, "wait: at most DUR (default: for ever)"),
    {.id = OPTION_JSON,
     .name = "json",
     .help = "status: an object; list: an array of objects; see rlock-latch(1)"},
    SETTING_AS(KEEP_CREDENTIALS, "run: leave RLOCK_PASSWORD, and the password in RLOCK_URL, in the "
                                 "command's environment"),
    SETTINGS_OPTIONS,
    {0}};

/* How long counting a success is tried with a store that is out of reach. */
#define COUNT_TIME_NS (30 * NS_PER_SEC)

struct latch {
    struct call call;
    const struct verb *verb;
    const char *key; /* list: a pattern, or NULL */
    int64_t number, ttl;
    const char *id;             /* the user's, or NULL */
    char word[OWNER_UUID_SIZE]; /* a fresh one */

    struct latch_operation *operation; /* under way, or NULL */
    struct latch_operation_end end;    /* of the last operation */
    struct status_line status_line;    /* about the operation that waits */
};

/* -- operations ------------------------------------------------------------------------------ */

static void compose(void *arg, size_t columns, char *line, size_t size)
{
    (void)columns;
    const struct latch *latch = arg;
    const struct answer *answer = &latch->end.answer;

    if (answer->verdict == VERDICT_GRANTED)
        snprintf(line, size, "waiting for latch %.120s: %" PRId64 " of %" PRId64 " left",
                 latch->key, answer->latch.left, answer->latch.number);
    else
        snprintf(line, size, "waiting for latch %.120s, which is not set yet", latch->key);
}

static void on_waiting(void *arg, const struct answer *answer)
{
    struct latch *latch = arg;

    latch->end.answer = *answer;
    status_line_begin(&latch->status_line);
}

static void on_trouble(void *arg, const struct answer *why)
{
    const struct latch *latch = arg;

    say_store_away(latch->key, why->text, why->said);
}

static void on_recovered(void *arg, int64_t after)
{
    const struct latch *latch = arg;

    say_store_back(latch->key, after);
}

static void on_over(void *arg, const struct latch_operation_end *end)
{
    struct latch *latch = arg;

    latch->end = *end;
    loop_stop(latch->call.query.loop);
}

/* Does one operation; latch->end is its end. Returns false if a signal came first, which is in
 * latch->call.signal: the store is closed then. */
static bool operate(struct latch *latch, const struct latch_operation_plan *plan)
{
    static const struct latch_operation_events events = {
        on_waiting, {on_trouble, on_recovered}, on_over};
    struct loop *loop = latch->call.query.loop;

    latch->operation = latch_operation_start(loop, latch->call.query.store, plan, &events, latch);
    if (loop_run(loop) < 0) {
        latch->end = (struct latch_operation_end){
            LATCH_OPERATION_FAILED, {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE}};
        snprintf(latch->end.answer.text, sizeof latch->end.answer.text, "event loop failed: %s",
                 strerror(errno));
    }
    status_line_end(&latch->status_line);
    if (latch->call.signal) {
        store_close(latch->call.query.store);
        latch->call.query.store = NULL;
    }
    latch_operation_free(latch->operation);
    latch->operation = NULL;
    return latch->call.signal == 0;
}

/* -- signals --------------------------------------------------------------------------------- */

static void on_signal(void *owner, int signo)
{
    struct latch *latch = owner;

    if (signo == SIGTSTP) {
        status_line_wipe(&latch->status_line);
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo)) {
        latch->call.signal = signo;
        loop_stop(latch->call.query.loop);
    }
}

/* Catches signals, so that the line on the terminal is wiped before this process dies of one. */
static int catch_signals(struct latch *latch)
{
    struct inherited inherited;

    say_set_job(getpgrp());
    return command_catch_signals(&latch->call, &inherited, on_signal);
}

/* -- reporting the end of an operation ------------------------------------------------------- */

static int refused(const struct latch *latch, const struct answer *answer, bool plain)
{
    if (answer->cause == CAUSE_ABSENT && !plain) {
        command_error(&latch->call, "%s: no such latch", latch->key);
        say_hint("rlock latch set %s N", latch->key);
    } else if (status_of_cause(answer->cause) == STATUS_NO && plain) {
        say_warning("latch: %s: %s", latch->key, answer->text);
    } else {
        return command_refused_about(&latch->call, latch->key, answer);
    }
    return status_of_cause(answer->cause);
}

/* With -n this is expected; otherwise the time was up, which is an error. */
static int closed(const struct latch *latch, const struct answer *answer)
{
    const struct latch_state *state = &answer->latch;
    bool expected = latch->call.settings.wait == 0;
    char why[80] = "no such latch was set";

    if (answer->verdict == VERDICT_GRANTED)
        snprintf(why, sizeof why, "%" PRId64 " of %" PRId64 " left", state->left, state->number);
    if (!expected || say_verbosity() != SAY_QUIET)
        command_error(&latch->call, "%s: not open: %s", latch->key, why);
    return STATUS_NOT_ACQUIRED;
}

/* Reports the end of an operation. plain: a latch that is missing, or exists, is a plain no, for
 * which the status is enough under -q. */
static int judge(const struct latch *latch, bool plain)
{
    const struct latch_operation_end *end = &latch->end;

    switch (end->ending) {
    case LATCH_OPERATION_DONE: return STATUS_OK;
    case LATCH_OPERATION_REFUSED: return refused(latch, &end->answer, plain);
    case LATCH_OPERATION_CLOSED: return closed(latch, &end->answer);
    case LATCH_OPERATION_VANISHED:
        command_error(&latch->call, "%s: vanished: deleted, expired or lost while waited for",
                      latch->key);
        return STATUS_NO;
    case LATCH_OPERATION_FAILED: break;
    }
    return command_refused(&latch->call, &end->answer);
}

/* -- the verbs ------------------------------------------------------------------------------- */

static struct latch_operation_plan plan_of(const struct latch *latch, enum latch_verb verb)
{
    return (struct latch_operation_plan){
        .request = {.key = latch->key, .verb = verb, .word = NULL, .number = latch->number},
        .connect_timeout = latch->call.settings.address.connect_timeout,
        .server_wait = latch->call.settings.address.server_wait};
}

static struct latch_operation_plan plan_count(const struct latch *latch)
{
    struct latch_operation_plan plan = plan_of(latch, LATCH_COUNT);

    plan.request.id = latch->id ? latch->id : latch->word;
    plan.request.unnamed = !latch->id;
    return plan;
}

static int set(struct latch *latch)
{
    struct latch_operation_plan plan = plan_of(latch, LATCH_SET);

    plan.request.word = latch->word;
    plan.request.ttl = latch->ttl;
    operate(latch, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK)
        say_detail("%s: set to %" PRId64, latch->key, latch->number);
    return status;
}

static int count_down(struct latch *latch)
{
    struct latch_operation_plan plan = plan_count(latch);
    const struct latch_state *state = &latch->end.answer.latch;

    operate(latch, &plan);
    int status = judge(latch, false);
    if (status != STATUS_OK) {
        if (latch->end.answer.maybe_done)
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

static int delete (struct latch *latch)
{
    struct latch_operation_plan plan = plan_of(latch, LATCH_DELETE);

    operate(latch, &plan);
    return judge(latch, true);
}

static int show(struct latch *latch)
{
    struct latch_ids ids = {0};
    struct latch_operation_plan plan = plan_of(latch, LATCH_LIST);
    const struct latch_state *state = &latch->end.answer.latch;

    plan.request.each = latch_ids_add;
    plan.request.each_arg = &ids;
    operate(latch, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK && say_verbosity() != SAY_QUIET) {
        if (latch->call.as_json)
            render_latch_json(stdout, &latch->call.json, latch->key, state, &ids);
        else
            render_latch(stdout, latch->key, state, &ids);
        status = command_flush();
    }
    latch_ids_free(&ids);
    return status == STATUS_OK && state->left ? STATUS_NOT_ACQUIRED : status;
}

static bool any_closed(const struct lock_list *list)
{
    for (size_t i = 0; i < list->locks.count; i++)
        if (list->locks.views[i].latch.left)
            return true;
    return false;
}

static int print_list(const struct latch *latch, const struct lock_list *list)
{
    if (latch->call.as_json)
        render_latches_json(stdout, &latch->call.json, list->locks.views, list->locks.count);
    else if (list->locks.count > 0)
        render_latches(stdout, list->locks.views, list->locks.count,
                       command_has_color(&latch->call));
    else
        say_warning("no latches");
    return command_flush();
}

static int list(struct latch *latch)
{
    struct lock_list list;
    struct answer answer;
    int status;

    query_latches(&latch->call.query, &latch->key, latch->key ? 1 : 0, &list, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        status = command_refused(&latch->call, &answer);
    else if (say_verbosity() == SAY_QUIET)
        status = any_closed(&list) ? STATUS_NOT_ACQUIRED : STATUS_OK;
    else
        status = print_list(latch, &list);
    lock_list_free(&list);
    return status;
}

static int wait_until_open(struct latch *latch)
{
    struct latch_operation_plan plan = plan_of(latch, LATCH_LOOK);
    int64_t wait = latch->call.settings.wait;
    int status = catch_signals(latch);

    plan.until_open = true;
    plan.wait = wait != 0;
    plan.wait_until = wait == WAIT_FOREVER ? MOMENT_NEVER : moment_plus(moment_now(), wait);
    if (status != STATUS_OK || !operate(latch, &plan))
        return status;
    return judge(latch, false);
}

/* -- run ------------------------------------------------------------------------------------- */

/* Counts, but only on the latch that was there before. */
static int count_success(struct latch *latch, const char *word)
{
    struct latch_operation_plan plan = plan_count(latch);
    struct answer *answer = &latch->end.answer;

    plan.request.word = word;
    if (plan.server_wait < COUNT_TIME_NS)
        plan.server_wait = COUNT_TIME_NS;
    if (catch_signals(latch) != STATUS_OK)
        return STATUS_SYSTEM;
    query_pause(&latch->call.query, 0); /* notices a connection that was closed meanwhile */
    if (!operate(latch, &plan)) {
        command_error(&latch->call, "%s: ended by a signal before it was counted", latch->key);
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

/* Looks for the latch first. The command runs under no lock, and counts if it succeeds. */
static int run_command(struct latch *latch)
{
    struct latch_operation_plan plan = plan_of(latch, LATCH_LOOK);
    struct environment environment;
    struct run_messages messages;
    struct fenced_outcome outcome;
    char word[LATCH_WORD_SIZE];

    operate(latch, &plan);
    int status = judge(latch, false);
    if (status != STATUS_OK)
        return status;
    memcpy(word, latch->end.answer.latch.word, sizeof word);
    environment_make(&environment, environ, NULL, latch->call.settings.keep_credentials);
    run_messages_init(&messages, latch->key, latch->call.arguments.command[0]);
    const struct fenced_plan run = {.job = {.command = latch->call.arguments.command,
                                            .environment = &environment,
                                            .events = &messages.events,
                                            .on_lost = ON_LOST_CONTINUE,
                                            .renew = true},
                                    .lock = -1};
    fenced_run(&run, &outcome);
    environment_free(&environment);
    latch->call.signal = outcome.signal;
    return outcome.signal || outcome.status != STATUS_OK ? outcome.status
                                                         : count_success(latch, word);
}

/* -- the command line ------------------------------------------------------------------------ */

static const struct command_action actions[] = {
    {"set", "KEY N", {OPTION_TTL}, true},
    {"count-down", "KEY [N]", {OPTION_ID}, false},
    {"run", "KEY -- COMMAND", {OPTION_ID, SETTING_KEEP_CREDENTIALS}, false},
    {"wait", "KEY", {SETTING_WAIT, OPTION_NO_WAIT}, false},
    {"status", "KEY", {OPTION_JSON}, false},
    {"list", "one KEY or GLOB at most", {OPTION_JSON}, false},
    {"delete", "KEY", {0}, false},
    {0}};

static const struct verb {
    const struct command_action *action;
    size_t least, most; /* words after the verb */
    bool runs;          /* a COMMAND */
    int (*act)(struct latch *);
} verbs[] = {
    {&actions[0], 2, 2, false, set},        {&actions[1], 1, 2, false, count_down},
    {&actions[2], 1, 1, true, run_command}, {&actions[3], 1, 1, false, wait_until_open},
    {&actions[4], 1, 1, false, show},       {&actions[5], 0, 1, false, list},
    {&actions[6], 1, 1, false, delete},
};

/* Finds the verb that the user gave. */
static int find_verb(struct latch *latch)
{
    const struct arguments *given = &latch->call.arguments;
    const char *name = given->word_count ? given->words[0] : NULL;
    char shown[URLS_SHOWN_SIZE];

    for (size_t i = 0; name && i < sizeof verbs / sizeof *verbs; i++) {
        latch->verb = &verbs[i];
        if (strcmp(verbs[i].action->name, name) == 0)
            return STATUS_OK;
    }
    return command_misused(
        &latch->call, "%s%s%sset, count-down, run, wait, status, list or delete?",
        name ? "unknown '" : "", name ? urls_show(name, shown) : "", name ? "': " : "");
}

/* Refuses options of another verb, which would be ignored. */
static int check_options(const struct latch *latch)
{
    const struct arguments *given = &latch->call.arguments;

    for (size_t i = 0; i < given->option_count; i++)
        if (!command_action_takes(latch->verb->action, given->options[i].id))
            return command_misused(&latch->call, "%s takes no --%s", latch->verb->action->name,
                                   given->options[i].name);
    return STATUS_OK;
}

static int check_values(struct latch *latch)
{
    struct call *call = &latch->call;
    const char *number = call->arguments.word_count > 2 ? call->arguments.words[2] : "1";
    const char *fault = latch->key ? key_fault(latch->key) : NULL;
    char shown[URLS_SHOWN_SIZE];

    latch->id = command_value(call, OPTION_ID);
    latch->ttl = TTL_DEFAULT_NS;
    if (fault)
        return command_wrong(call, "KEY", latch->key, fault);
    if (!decimal_parse(number, 1, LATCH_NUMBER_MAX, &latch->number))
        return command_misused(call, "N '%s' is not a number from 1 to %d",
                               urls_show(number, shown), LATCH_NUMBER_MAX);
    if (latch->id && (fault = key_fault(latch->id)))
        return command_wrong(call, "--id", latch->id, fault);
    int status = command_take_duration(call, OPTION_TTL, &latch->ttl);
    if (status == STATUS_OK && latch->ttl < TTL_LEAST_NS)
        return command_misused(call, "--ttl must be at least 1s");
    return status;
}

static int check(struct call *call)
{
    struct latch *latch = (struct latch *)call;
    const struct arguments *given = &call->arguments;
    int status = find_verb(latch);

    if (status != STATUS_OK)
        return status;
    const struct verb *verb = latch->verb;
    if (given->word_count - 1 < verb->least || given->word_count - 1 > verb->most)
        return command_misused(call, "%s takes %s", verb->action->name, verb->action->wants);
    if (!verb->runs && given->command)
        return command_misused(call, "%s takes no COMMAND", verb->action->name);
    if (verb->runs && (!given->command || !*given->command || !**given->command))
        return command_misused(call, "no COMMAND: put -- before it");
    latch->key = given->word_count > 1 ? given->words[1] : NULL;
    status = check_options(latch);
    return status == STATUS_OK ? check_values(latch) : status;
}

static int act(struct call *call)
{
    struct latch *latch = (struct latch *)call;

    own_identity_uuid(latch->word);
    status_line_init(&latch->status_line, call->query.loop, say_verbosity() == SAY_QUIET, compose,
                     latch);
    return latch->verb->act(latch);
}

const struct command command_latch = {
    .name = "latch",
    .summary = "let jobs wait until others, on many hosts, are done",
    .usage = {"latch set [--ttl DUR] KEY N | count-down [--id ID] KEY [N]",
              "latch run [--id ID] KEY -- COMMAND [ARG...] | wait [-w DUR] KEY",
              "latch status [--json] KEY | list [--json] [GLOB] | delete KEY"},
    .example = "Status: 0; 1 if there is no such latch, or for set if it exists already;\n"
               "75 for wait if it is not open when the time is up, for status if it is not\n"
               "open, for list -q if not all are open. run ends with the status of COMMAND,\n"
               "and counts only if that is 0.\n"
               "\n"
               "Example, three builds, and a job that starts when all of them have succeeded:\n"
               "  rlock latch set \"build-$VERSION\" 3\n"
               "  rlock latch run --id \"$ARCH\" \"build-$VERSION\" -- make package\n"
               "  rlock latch wait -w 2h \"build-$VERSION\" && ./publish.sh\n",
    .options = options,
    .actions = actions,
    .size = sizeof(struct latch),
    .needs = STORE_LATCHES,
    .json = OPTION_JSON,
    .asks = true,
    .check = check,
    .act = act,
};
