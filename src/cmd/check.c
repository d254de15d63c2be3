/* rlock check: one line and a status for Nagios, Icinga, cron. */
#include "cmd/commands.h"

#include <stdio.h>

#include "base/utf8.h"
#include "cmd/thresholds.h"
#include "store/urls.h"

enum { OPTION_HELD = OPTION_OTHER, OPTION_WAITING, OPTION_WAITERS, OPTION_NOT_DONE, OPTION_PAUSED };

static const struct option_spec options[] = {
    {.id = OPTION_HELD,
     .name = "held",
     .argument = "[WARN:]CRIT",
     .help = "critical where a lock has been held for more than CRIT; a warning beyond WARN"},
    {.id = OPTION_WAITING,
     .name = "waiting",
     .argument = "[WARN:]CRIT",
     .help = "the same where somebody has waited for longer"},
    {.id = OPTION_WAITERS,
     .name = "waiters",
     .argument = "[WARN:]CRIT",
     .help = "the same where more wait for one lock"},
    {.id = OPTION_NOT_DONE,
     .name = "not-done",
     .argument = "[WARN:]CRIT",
     .help = "the same where no run has succeeded for longer, or none ever has"},
    {.id = OPTION_PAUSED,
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
    struct thresholds thresholds;
    struct lock_list list;
    bool quiet; /* print nothing where all is fine */
};

/* STATUS_OK, also where the option was not given. */
static int take(const struct check *check, int option, const char *name,
                const char *(*parse)(const char *, struct threshold *), struct threshold *threshold)
{
    const struct given_option *given = command_option(&check->arguments, option);
    const char *fault = given ? parse(given->value, threshold) : NULL;
    char shown[URLS_SHOWN_SIZE];

    return fault ? command_misused(check->command, "--%s '%s' %s", name,
                                   urls_show(given->value, shown), fault)
                 : STATUS_OK;
}

static int take_thresholds(struct check *check)
{
    struct thresholds *wanted = &check->thresholds;
    int status = take(check, OPTION_HELD, "held", threshold_parse_duration, &wanted->held);

    if (status == STATUS_OK)
        status = take(check, OPTION_WAITING, "waiting", threshold_parse_duration, &wanted->waiting);
    if (status == STATUS_OK)
        status = take(check, OPTION_WAITERS, "waiters", threshold_parse_number, &wanted->waiters);
    if (status == STATUS_OK)
        status =
            take(check, OPTION_NOT_DONE, "not-done", threshold_parse_duration, &wanted->not_done);
    if (status == STATUS_OK)
        status = take(check, OPTION_PAUSED, "paused", threshold_parse_duration, &wanted->paused);
    return status;
}

/* A monitor may take both streams for the plugin's line: what is merely on the way is for those who
 * ask for it. */
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
    if (check->thresholds.not_done.given && !store_can(&check->settings.address, STORE_MEMORY))
        return command_lacks(check->command, &check->settings.address, STORE_MEMORY);
    hush(check);
    return command_open(check->command, &check->settings, &check->query);
}

static enum severity judge(struct check *check, char line[THRESHOLDS_LINE_SIZE])
{
    const char *const *patterns = (const char *const *)check->arguments.words;
    size_t pattern_count = check->arguments.word_count;
    char why[UTF8_ESCAPED_SIZE(sizeof(((struct answer *)NULL)->text))];
    struct answer answer;

    bool past = check->thresholds.not_done.given;
    query_memory(&check->query, patterns, pattern_count, past, past, &check->list, &answer);
    if (answer.verdict == VERDICT_GRANTED)
        return thresholds_judge(&check->thresholds,
                                &(struct thresholds_subject){
                                    .locks = check->list.locks.views,
                                    .count = check->list.locks.count,
                                    .pauses = check->list.pauses.views,
                                    .pause_count = check->list.pauses.count,
                                    .patterns = patterns,
                                    .pattern_count = pattern_count,
                                },
                                line);
    if (answer.said[0])
        say_detail("%s: the server said: %s", check->command->name, answer.said);
    return thresholds_unknown(utf8_escape(answer.text, why, sizeof why), line);
}

static int look(struct check *check)
{
    char line[THRESHOLDS_LINE_SIZE];
    enum severity severity = judge(check, line);

    if (severity == SEVERITY_OK && check->quiet)
        return severity;
    puts(line);
    int status = command_flush();
    return status == STATUS_OK ? (int)severity : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct check check = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &check.arguments, &status) &&
        command_takes_patterns(command, &check.arguments, &status)) {
        status = prepare(&check);
        if (status == STATUS_OK)
            status = look(&check);
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
               "Example, a nightly job that nobody has done:\n"
               "  rlock check --not-done 26h nightly\n",
    .options = options,
    .run = run,
};
