/* rlock latch: let jobs wait until others, on many hosts, are done. */
#include "cmd/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "base/jitter.h"
#include "base/text.h"
#include "cli/not_executed.h"
#include "cli/run_messages.h"
#include "cmd/render_latch.h"
#include "lock/own_identity.h"
#include "lock/owner.h"
#include "lock/throttle.h"
#include "net/loop.h"
#include "run/environment.h"
#include "run/fenced.h"
#include "store/url.h"

#define TTL_DEFAULT_NS (INT64_C(86400) * NS_PER_SEC)
#define TTL_LEAST_NS   (1 * NS_PER_SEC)

enum { OPTION_TTL = OPTION_OTHER, OPTION_ID, OPTION_JSON };

static const struct option_spec options[] = {
    OPTION(OPTION_TTL, "ttl", "DUR",
           "set: the latch expires after DUR, open or not (default 1d, at least 1s)"),
    OPTION(OPTION_ID, "id", "ID", "count-down, run: count only once for ID, a word like KEY"),
    NO_WAIT_AS("wait: do not wait, end with 75"),
    SETTING_AS(WAIT, "wait: at most DUR (default: for ever)"),
    OPTION(OPTION_JSON, "json", NULL,
           "status: an object; list: an array of objects; see rlock-latch(1)"),
    SETTING_AS(KEEP_CREDENTIALS, "run: leave RLOCK_PASSWORD, and the password in RLOCK_URL, in the "
                                 "command's environment"),
    SETTINGS_OPTIONS,
    {0}};

/* How often a waiter looks when the store does not poke it, and by how much that is spread. */
#define LOOK_NS   (2500 * NS_PER_MS)
#define SPREAD_NS (250 * NS_PER_MS)

struct latch {
    struct call call;
    const struct command_action *verb;
    const char *key;              /* list: a pattern, or NULL */
    struct latch_request request; /* its id is the user's, or NULL */
    char word[OWNER_UUID_SIZE];   /* a fresh one */
    struct answer answer;         /* to the last request */

    /* Waiting. */
    struct status_line status_line; /* says why */
    struct throttle pace;           /* of the looks */
    char seen[LATCH_WORD_SIZE];     /* identifies the latch that was seen first; "": none yet */
    bool resting;                   /* between two looks; a poke ends that */
    bool poked;                     /* since the last look */
};

/* -- requests -------------------------------------------------------------------------------- */

/* Asks until "end", and keeps the answer in latch->answer. The store is closed if a signal comes
 * first, which is in latch->call.signal then. */
static void ask_latch(struct latch *latch, enum latch_verb verb, struct moment end)
{
    struct answer answer; /* meanwhile the line about the wait shows the one before */

    latch->request.verb = verb;
    query_latch(&latch->call.query, &latch->request, end, &answer);
    latch->answer = answer;
}

/* -- signals --------------------------------------------------------------------------------- */

/* Ends on a signal that asks for it. Before this process stops with the terminal, the status line
 * goes. */
static void on_signal(void *owner, int signo)
{
    struct latch *latch = owner;

    if (signo == SIGTSTP) {
        status_line_wipe(&latch->status_line);
        terminal_stop(SIGTSTP, TERMINAL_STOPS_PROCESS);
    } else if (child_signal_is_fatal(signo)) {
        latch->call.signal = signo;
        loop_stop(latch->call.query.loop);
    }
}

/* Catches signals, so that the line on the terminal is wiped before this process dies of one. */
static int catch_signals(struct latch *latch)
{
    struct inherited inherited;

    say_set_job(getpgrp()); /* the line is drawn in the foreground only */
    return command_catch_signals(&latch->call, &inherited, on_signal);
}

/* -- reporting an answer --------------------------------------------------------------------- */

/* A latch that is missing, or exists, is a mistake; or a plain no, for which the status is enough
 * under -q. */
enum latch_no { NO_IS_ERROR, NO_IS_PLAIN };

/* Reports the last answer, if it is not GRANTED. Returns the status for it. */
static int report_answer(const struct latch *latch, enum latch_no no)
{
    switch (latch->answer.verdict) {
    case VERDICT_GRANTED: return STATUS_OK;
    case VERDICT_REFUSED: {
        const struct answer *answer = &latch->answer;
        if (answer->cause == CAUSE_ABSENT && no == NO_IS_ERROR) {
            command_error(&latch->call, "%s: no such latch", latch->key);
            command_hint_key("latch set", latch->key, " N");
        } else if (status_of_cause(answer->cause) == STATUS_NO && no == NO_IS_PLAIN) {
            say_warning("latch: %s: %s", latch->key, answer->text);
        } else {
            return command_refused_about(&latch->call, latch->key, answer);
        }
        return status_of_cause(answer->cause);
    }
    case VERDICT_UNKNOWN: break;
    }
    return command_refused(&latch->call, &latch->answer);
}

/* -- the verbs ------------------------------------------------------------------------------- */

/* Counts the latch down once; the answer is in latch->answer. Without an id of the user's, a word
 * of this call's own is one, so that asking twice counts once. */
static void count_latch(struct latch *latch)
{
    latch->request.unnamed = !latch->request.id;
    if (latch->request.unnamed)
        latch->request.id = latch->word;
    ask_latch(latch, LATCH_COUNT, MOMENT_NEVER);
}

/* Makes the latch, which must not exist yet. */
static int set_latch(struct latch *latch)
{
    latch->request.word = latch->word; /* identifies it, as a later one may have the same KEY */
    ask_latch(latch, LATCH_SET, MOMENT_NEVER);
    int status = report_answer(latch, NO_IS_PLAIN);
    if (status == STATUS_OK)
        say_detail("%s: set to %" PRId64, latch->key, latch->request.number);
    return status;
}

/* Counts the latch down, and prints what is left. */
static int count_down(struct latch *latch)
{
    const struct latch_state *state = &latch->answer.granted.latch;

    count_latch(latch);
    int status = report_answer(latch, NO_IS_ERROR);
    if (status != STATUS_OK) {
        if (latch->answer.maybe_done)
            say_warning("%s: it may have been counted anyway", latch->key);
        return status;
    }
    if (!state->counted)
        say_detail("%s: nothing was counted: %s", latch->key,
                   state->left ? "that id was counted before" : "it is open already");
    if (say_verbosity() != SAY_QUIET)
        printf("%" PRId64 "\n", state->left);
    return command_flush();
}

static int delete_latch(struct latch *latch)
{
    ask_latch(latch, LATCH_DELETE, MOMENT_NEVER);
    return report_answer(latch, NO_IS_PLAIN);
}

/* Prints the latch with the ids that it has counted. The status tells whether it is open. */
static int show_latch(struct latch *latch)
{
    struct latch_ids ids ENDED_BY(latch_ids_free) = {0};
    struct strbuf out = {0};
    const struct latch_state *state = &latch->answer.granted.latch;

    latch->request.each = latch_ids_add;
    latch->request.each_arg = &ids;
    ask_latch(latch, LATCH_LIST, MOMENT_NEVER);
    int status = report_answer(latch, NO_IS_PLAIN);
    if (status == STATUS_OK && say_verbosity() != SAY_QUIET) {
        if (latch->call.as_json)
            render_latch_json(&out, latch->key, state, &ids);
        else
            render_latch(&out, latch->key, state, &ids);
        status = command_print(&out);
    }
    return status == STATUS_OK && state->left ? STATUS_NOT_ACQUIRED : status;
}

/* Prints the latches that match, or all. With -q the status tells that one of them is
 * not open yet. */
static int list_latches(struct latch *latch)
{
    const struct survey_request request = {
        .patterns = &latch->key, .pattern_count = latch->key ? 1 : 0, .latches = true};
    struct lock_list *list = &latch->call.list;
    const struct lock_views *latches = &list->locks;
    struct strbuf out = {0};
    int status = STATUS_OK;
    struct answer answer;

    query_survey(&latch->call.query, &request, list, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(&latch->call, &answer);
    bool quiet = say_verbosity() == SAY_QUIET;
    for (size_t i = 0; quiet && i < latches->count; i++)
        if (latches->views[i].latch.left)
            status = STATUS_NOT_ACQUIRED;
    if (!quiet) {
        if (latch->call.as_json)
            render_latches_json(&out, latches->views, latches->count);
        else if (latches->count > 0)
            render_latches(&out, latches->views, latches->count, command_has_color(&latch->call));
        else
            say_warning("no latches");
        status = command_print(&out);
    }
    return list->misfits.count > 0 ? command_tell_misfits(&latch->call, list) : status;
}

/* -- wait ------------------------------------------------------------------------------------ */

/* Composes the line that the terminal shows while the latch is waited for. */
static void compose_status(void *arg, size_t columns, char *line, size_t size)
{
    (void)columns;
    const struct latch *latch = arg;
    const struct latch_state *state = &latch->answer.granted.latch;

    if (latch->answer.verdict == VERDICT_GRANTED)
        snprintf(line, size, "waiting for latch %s: %" PRId64 " of %" PRId64 " left",
                 BRIEF_TEXT(latch->key, 120), state->left, state->number);
    else
        snprintf(line, size, "waiting for latch %s, which is not set yet",
                 BRIEF_TEXT(latch->key, 120));
}

/* Called by the store (store_events): the latch may have changed. Looks again; but the answer to a
 * question that is under way takes account of the change. */
static void on_poked(void *arg)
{
    struct latch *latch = arg;

    latch->poked |= latch->call.query.answered;
    if (latch->resting)
        loop_stop(latch->call.query.loop);
}

/* The latch, as a look shows it. DECIDED: it is open, or the answer is an error that ends the
 * wait. */
enum sight { CLOSED, VANISHED, DECIDED };

/* Reads the latest answer. A missing latch does not count as open, nor does one that is not the one
 * that was seen first. */
static enum sight read_state(const struct latch *latch)
{
    const struct answer *answer = &latch->answer;
    bool there = answer->verdict == VERDICT_GRANTED;

    if (!there && answer->cause != CAUSE_ABSENT)
        return DECIDED;
    if (latch->seen[0] && (!there || strcmp(latch->seen, answer->granted.latch.word) != 0))
        return VANISHED;
    return there && answer->granted.latch.left == 0 ? DECIDED : CLOSED;
}

/* Waits until "due", or for news of the latch, and then for as long as the throttle wants. */
static void await_news(struct latch *latch, struct moment due)
{
    struct loop *loop = latch->call.query.loop;

    latch->resting = !latch->poked;
    if (latch->resting)
        loop_run_for(loop, moment_until(moment_now(), due));
    latch->resting = false;
    if (latch->poked && !latch->call.signal) {
        due = moment_min(due, throttle_next(&latch->pace));
        loop_run_for(loop, moment_until(moment_now(), due));
    }
}

/* Asks for the latch until it is not waited for any more (read_state()), time is over or a signal
 * came. Where the latch is likely to be open, at first, after a poke and at the end, a look costs
 * less as it does not listen; one that listens follows at once, so that nothing goes unnoticed. */
static void look_until(struct latch *latch, struct moment until)
{
    struct latch_request *request = &latch->request;
    bool once = latch->call.settings.wait == 0;

    while (!latch->call.signal) {
        throttle_note(&latch->pace, moment_now());
        latch->poked = false;
        ask_latch(latch, LATCH_LOOK, once ? MOMENT_NEVER : until);
        struct moment now = moment_now();
        if (read_state(latch) != CLOSED || moment_reached(until, now))
            return;
        if (latch->answer.verdict == VERDICT_GRANTED)
            memcpy(latch->seen, latch->answer.granted.latch.word, sizeof latch->seen);
        if (request->listen) {
            status_line_begin(&latch->status_line);
            now = moment_plus(now, jitter_spread(LOOK_NS, SPREAD_NS));
            await_news(latch, moment_min(now, until));
        }
        bool may_be_open = latch->poked || moment_reached(until, moment_now());
        request->listen = !request->listen || !may_be_open;
    }
}

/* Says that the latch is not open. With --quiet a plain no is enough if it was not to be waited
 * for. */
static int report_closed(struct latch *latch)
{
    const struct latch_state *state = &latch->answer.granted.latch;
    bool expected = latch->call.settings.wait == 0;
    char why[80] = "no such latch was set";

    if (latch->answer.verdict == VERDICT_GRANTED)
        snprintf(why, sizeof why, "%" PRId64 " of %" PRId64 " left", state->left, state->number);
    if (!expected || say_verbosity() != SAY_QUIET)
        command_error(&latch->call, "%s: not open: %s", latch->key, why);
    return STATUS_NOT_ACQUIRED;
}

/* Waits until the latch is open, the time is up, or a signal came, which call.signal has then. */
static int wait_until_open(struct latch *latch)
{
    static const struct store_events events = {.poked = on_poked};
    int64_t wait = latch->call.settings.wait;
    struct moment now = moment_now();
    int status = catch_signals(latch);

    if (status != STATUS_OK)
        return status;
    store_on_event(latch->call.query.store, &events, latch);
    look_until(latch, wait == WAIT_FOREVER ? MOMENT_NEVER : moment_plus(now, wait));
    status_line_end(&latch->status_line);
    if (latch->call.signal)
        return status;
    switch (read_state(latch)) {
    case CLOSED: return report_closed(latch);
    case VANISHED:
        command_error(&latch->call, "%s: vanished: deleted, expired or lost while waited for",
                      latch->key);
        return STATUS_NO;
    case DECIDED: break;
    }
    return report_answer(latch, NO_IS_ERROR);
}

/* -- run ------------------------------------------------------------------------------------- */

/* Counts down the latch after the command has succeeded, if it is the one that was there before
 * (word). A signal that ends this is the call's status, so STATUS_OK is returned then. */
static int count_success(struct latch *latch, const char *word)
{
    struct query *query = &latch->call.query;
    struct answer *answer = &latch->answer;

    latch->request.word = word;
    if (catch_signals(latch) != STATUS_OK)
        return STATUS_SYSTEM;
    loop_run_for(query->loop, 0); /* notices a connection that was closed meanwhile */
    /* The store has answered, but may be away for as long as at the start: the command is done. */
    if (query->outage.longest < query->server_wait)
        query->outage.longest = query->server_wait;
    if (latch->call.signal) {
        command_error(&latch->call, "%s: ended by a signal before it was counted", latch->key);
        return STATUS_OK;
    }
    count_latch(latch);
    if (latch->call.signal && answer->verdict == VERDICT_UNKNOWN) {
        command_error(&latch->call, "%s: ended by a signal: it may not have been counted",
                      latch->key);
        return STATUS_OK;
    }
    if (answer->cause == CAUSE_ABSENT) { /* which would be reported as a KEY that was mistyped */
        answer->cause = CAUSE_CHANGED;
        snprintf(answer->text, sizeof answer->text, "the latch vanished while the command ran");
    }
    int status = report_answer(latch, NO_IS_ERROR);
    if (status == STATUS_OK)
        say_detail("%s: %" PRId64 " of %" PRId64 " left", latch->key, answer->granted.latch.left,
                   answer->granted.latch.number);
    else
        say_warning("%s: the command succeeded, but %s", latch->key,
                    answer->maybe_done ? "may not have been counted" : "was not counted");
    return status;
}

/* Looks for the latch first, as the command may be long. It runs under no lock, and is counted if
 * it succeeds. */
static int run_command(struct latch *latch)
{
    struct environment environment;
    struct run_messages messages;
    struct fenced_outcome outcome;
    char word[LATCH_WORD_SIZE];

    ask_latch(latch, LATCH_LOOK, MOMENT_NEVER);
    int status = report_answer(latch, NO_IS_ERROR);
    if (status != STATUS_OK)
        return status;
    memcpy(word, latch->answer.granted.latch.word, sizeof word);
    environment_make(&environment, environ, NULL,
                     latch->call.settings.keep_credentials ? PASSWORDS_KEPT : PASSWORDS_REMOVED);
    run_messages_init(&messages, latch->key, latch->call.arguments.command[0]);
    const struct fenced_plan run = {.job = {.command = latch->call.arguments.command,
                                            .environment = &environment,
                                            .events = &messages.events,
                                            .on_lost = ON_LOST_CONTINUE,
                                            .renew = true}, /* no lease ends */
                                    .lock = -1};
    fenced_run(&run, &outcome);
    if (outcome.not_executed)
        not_executed_hint(outcome.status, run.job.command[0], "sh -c");
    environment_free(&environment);
    latch->call.signal = outcome.signal;
    return outcome.signal || outcome.status != STATUS_OK ? outcome.status
                                                         : count_success(latch, word);
}

/* -- the command line ------------------------------------------------------------------------ */

static const struct command_action actions[] = {
    {"set", "KEY N", {OPTION_TTL}, true, 2, 2, false},
    {"count-down", "KEY [N]", {OPTION_ID}, false, 1, 2, false},
    {"run", "KEY -- COMMAND", {OPTION_ID, SETTING_KEEP_CREDENTIALS}, false, 1, 1, true},
    {"wait", "KEY", {SETTING_WAIT, OPTION_NO_WAIT}, false, 1, 1, false},
    {"status", "KEY", {OPTION_JSON}, false, 1, 1, false},
    {"list", "one KEY or GLOB at most", {OPTION_JSON}, false, 0, 1, false},
    {"delete", "KEY", {0}, false, 1, 1, false},
    {0}};

/* The functions of these actions, in the same order. */
static int (*const acts[])(struct latch *) = {
    set_latch, count_down, run_command, wait_until_open, show_latch, list_latches, delete_latch};

/* Checks KEY, N and the values of options, and fills in the request. */
static int check_values(struct latch *latch)
{
    struct call *call = &latch->call;
    struct latch_request *request = &latch->request;
    const char *number = call->arguments.word_count > 2 ? call->arguments.words[2] : "1";
    const char *fault = latch->key ? key_fault(latch->key) : NULL;

    *request = (struct latch_request){
        .key = latch->key, .id = command_value(call, OPTION_ID), .ttl = TTL_DEFAULT_NS};
    if (fault)
        return command_wrong(call, "KEY", latch->key, fault);
    if (!decimal_parse(number, 1, LATCH_NUMBER_MAX, &request->number))
        return command_misused(call, "N '%s' is not a number from 1 to %d", URLS_TEXT(number),
                               LATCH_NUMBER_MAX);
    if (request->id && (fault = key_fault(request->id)))
        return command_wrong(call, "--id", request->id, fault);
    int status = command_take_duration(call, OPTION_TTL, &request->ttl);
    if (status == STATUS_OK && request->ttl < TTL_LEAST_NS)
        return command_misused(call, "--ttl must be at least 1s");
    return status;
}

/* Finds the verb, and checks the words and the options that it takes. */
static int check_verb(struct call *call)
{
    struct latch *latch = (struct latch *)call;
    const struct arguments *given = &call->arguments;
    const struct command_action *verb = command_find_action(call->command, given);

    if (!verb)
        return command_misused(call, "%s%s%sset, count-down, run, wait, status, list or delete?",
                               given->words[0] ? "unknown '" : "",
                               given->words[0] ? URLS_TEXT(given->words[0]) : "",
                               given->words[0] ? "': " : "");
    latch->verb = verb;
    if (given->word_count - 1 < verb->least || given->word_count - 1 > verb->most)
        return command_misused(call, "%s takes %s", verb->name, verb->wants);
    if (!verb->runs && given->command)
        return command_misused(call, "%s takes no COMMAND", verb->name);
    if (verb->runs && (!given->command || !*given->command || !**given->command))
        return command_misused(call, "no COMMAND: put -- before it");
    latch->key = given->word_count > 1 ? given->words[1] : NULL;
    /* Options of another verb would be ignored. */
    for (size_t i = 0; i < given->option_count; i++)
        if (!command_action_takes(verb, given->options[i].id))
            return command_misused(call, "%s takes no --%s", verb->name, given->options[i].name);
    return check_values(latch);
}

/* Does what the subcommand of latch says. */
static int act_on_latch(struct call *call)
{
    struct latch *latch = (struct latch *)call;
    int (*verb)(struct latch *) = acts[latch->verb - actions];

    own_identity_uuid(latch->word);
    if (verb != list_latches)
        call->query.who = latch->key; /* messages about an outage begin with it */
    status_line_init(&latch->status_line, call->query.loop, say_verbosity() == SAY_QUIET,
                     compose_status, latch);
    return verb(latch);
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
    .check = check_verb,
    .act = act_on_latch,
};
