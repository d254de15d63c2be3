/* rlock check: one line and a status for Nagios, Icinga, cron. */
#include "cmd/commands.h"

#include <stdio.h>

#include "base/utf8.h"
#include "cmd/thresholds.h"
#include "store/urls.h"

/* OPTION_LIMIT + measure is the option of a measure, whose row is options[measure]. */
#define OPTION_LIMIT OPTION_OTHER

static const struct option_spec options[] = {
    {.id = OPTION_LIMIT + MEASURE_HELD,
     .name = "held",
     .argument = "[WARN:]CRIT",
     .help = "critical where a lock has been held for more than CRIT; a warning beyond WARN"},
    {.id = OPTION_LIMIT + MEASURE_WAITING,
     .name = "waiting",
     .argument = "[WARN:]CRIT",
     .help = "the same where a waiter has waited for longer"},
    {.id = OPTION_LIMIT + MEASURE_WAITERS,
     .name = "waiters",
     .argument = "[WARN:]CRIT",
     .help = "the same where more wait for one lock"},
    {.id = OPTION_LIMIT + MEASURE_NOT_DONE,
     .name = "not-done",
     .argument = "[WARN:]CRIT",
     .help = "the same where no run has succeeded for longer, or none ever has"},
    {.id = OPTION_LIMIT + MEASURE_PAUSED,
     .name = "paused",
     .argument = "[WARN:]CRIT",
     .help = "the same where a KEY or GLOB has been paused for longer"},
    SETTINGS_OPTIONS,
    {0}};

struct check {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct threshold thresholds[MEASURES];
    struct lock_list list;
    bool quiet; /* print nothing where all is fine */
};

static int take_thresholds(struct check *check)
{
    char shown[URLS_SHOWN_SIZE];

    for (enum measure i = 0; i < MEASURES; i++) {
        const struct given_option *given = command_option(&check->arguments, OPTION_LIMIT + (int)i);
        const char *fault = given ? threshold_parse(i, given->value, &check->thresholds[i]) : NULL;
        if (fault)
            return command_misused(check->command, "--%s '%s' %s", options[i].name,
                                   urls_show(given->value, shown), fault);
    }
    return STATUS_OK;
}

/* Monitors may take both streams for the plugin's line, so progress is printed only with -v. */
static void hush(struct check *check)
{
    check->quiet = say_verbosity() == SAY_QUIET;
    if (say_verbosity() == SAY_NORMAL)
        say_set_verbosity(SAY_QUIET);
}

static int prepare(struct check *check)
{
    int status = take_thresholds(check);

    if (status != STATUS_OK ||
        !command_settings(check->command, &check->arguments, &check->settings, &status))
        return status;
    if (check->thresholds[MEASURE_NOT_DONE].given &&
        !store_can(&check->settings.address, STORE_MEMORY))
        return command_lacks(check->command, &check->settings.address, STORE_MEMORY);
    hush(check);
    return command_open(check->command, &check->settings, &check->query);
}

static enum severity judge(struct check *check, struct strbuf *line)
{
    const char *const *patterns = (const char *const *)check->arguments.words;
    size_t pattern_count = check->arguments.word_count;
    const struct lock_list *list = &check->list;
    char why[UTF8_ESCAPED_SIZE(sizeof(((struct answer *)NULL)->text))];
    struct answer answer;

    bool past = check->thresholds[MEASURE_NOT_DONE].given;
    query_memory(&check->query, patterns, pattern_count, past, past, &check->list, &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        const struct thresholds_subject subject = {list->locks.views,  list->locks.count,
                                                   list->pauses.views, list->pauses.count,
                                                   patterns,           pattern_count};
        return thresholds_judge(check->thresholds, &subject, line);
    }
    if (answer.said[0])
        say_detail("%s: the server said: %s", check->command->name, answer.said);
    return thresholds_unknown(utf8_escape(answer.text, why, sizeof why), line);
}

static int print(struct check *check)
{
    struct strbuf line = {0};
    int severity = (int)judge(check, &line), status = STATUS_OK;

    if (severity != SEVERITY_OK || !check->quiet) {
        puts(line.text);
        status = command_flush();
    }
    strbuf_free(&line);
    return status == STATUS_OK ? severity : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct check check = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &check.arguments, &status)) {
        status = prepare(&check);
        if (status == STATUS_OK)
            status = print(&check);
    }
    lock_list_free(&check.list);
    query_close(&check.query);
    settings_free(&check.settings);
    args_free(&check.arguments);
    return status;
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
    .run = run,
};
