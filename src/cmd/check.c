/* rlock check: one line and a status for Nagios, Icinga, cron. */
#include "cmd/commands.h"

#include "cmd/thresholds.h"
#include "store/url.h"

/* OPTION_LIMIT + measure is the option of a measure, whose row is options[measure]. */
#define OPTION_LIMIT OPTION_OTHER

static const struct option_spec options[] = {
    OPTION(OPTION_LIMIT + MEASURE_HELD, "held", "[WARN:]CRIT",
           "critical where a lock has been held for more than CRIT; a warning beyond WARN"),
    OPTION(OPTION_LIMIT + MEASURE_WAITING, "waiting", "[WARN:]CRIT",
           "the same where a waiter has waited for longer"),
    OPTION(OPTION_LIMIT + MEASURE_WAITERS, "waiters", "[WARN:]CRIT",
           "the same where more wait for one lock"),
    OPTION(OPTION_LIMIT + MEASURE_NOT_DONE, "not-done", "[WARN:]CRIT",
           "the same where no run has succeeded for longer, or none ever has"),
    OPTION(OPTION_LIMIT + MEASURE_PAUSED, "paused", "[WARN:]CRIT",
           "the same where a KEY or GLOB has been paused for longer"),
    SETTINGS_OPTIONS,
    {0}};

struct check {
    struct call call;
    struct threshold thresholds[MEASURES];
};

/* Takes the threshold of each measure whose option is given. The options stand in the order of the
 * measures. */
static int take_thresholds(struct call *call)
{
    struct check *check = (struct check *)call;

    for (enum measure i = 0; i < MEASURES; i++) {
        const char *value = command_value(call, OPTION_LIMIT + (int)i);
        const char *fault = value ? threshold_parse(i, value, &check->thresholds[i]) : NULL;
        char name[20];
        snprintf(name, sizeof name, "--%s", options[i].name);
        if (fault)
            return command_wrong(call, name, value, fault);
    }
    call->needs = check->thresholds[MEASURE_NOT_DONE].given ? STORE_MEMORY : 0;
    return STATUS_OK;
}

/* Surveys the locks, and judges them. Returns the severity, with the line to print. */
static enum severity judge_thresholds(struct check *check, struct strbuf *line)
{
    const struct arguments *given = &check->call.arguments;
    struct survey_request request = command_request(&check->call);
    struct answer answer;

    if (check->thresholds[MEASURE_NOT_DONE].given) {
        request.runs = 1;
        request.idle = true; /* also those of locks that are not held */
    }
    query_survey(&check->call.query, &request, &check->call.list, &answer);
    lock_list_refuse(&check->call.list, &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        const struct thresholds_subject subject = {check->call.list.locks, check->call.list.pauses,
                                                   (const char *const *)given->words,
                                                   given->word_count};
        return thresholds_judge(check->thresholds, &subject, line);
    }
    if (answer.said[0])
        say_detail("check: the server said: %s", answer.said);
    return thresholds_unknown(answer.text, line);
}

/* Prints one line, as monitors want it, and returns the severity as the status. */
static int execute_check(struct call *call)
{
    bool quiet = say_verbosity() == SAY_QUIET;
    struct strbuf line ENDED_BY(strbuf_free) = {0};

    /* Monitors may take both streams for the plugin's line, so progress is printed only with -v. */
    if (say_verbosity() == SAY_NORMAL)
        say_set_verbosity(SAY_QUIET);
    int severity = (int)judge_thresholds((struct check *)call, &line), status = STATUS_OK;
    if (severity != SEVERITY_OK || !quiet) {
        puts(line.text);
        status = command_flush();
    }
    return status == STATUS_OK ? severity : status;
}

const struct command command_check = {
    .name = "check",
    .summary = "one line and a status about locks, for Nagios, Icinga, cron",
    .usage = {"check [OPTIONS] [KEY|GLOB...]"},
    .example = "Status: 0 fine, 1 warning, 2 critical, 3 unknown: the store cannot be reached.\n"
               "\n"
               "Example, deployments that hang or queue up:\n"
               "  rlock check --held 30m:2h --waiters 10 'deploy-*'\n"
               "\n"
               "Example, a nightly job that was not done:\n"
               "  rlock check --not-done 26h nightly\n",
    .options = options,
    .words = WORDS_PATTERNS,
    .size = sizeof(struct check),
    .asks = true,
    .check = take_thresholds,
    .act = execute_check,
};
