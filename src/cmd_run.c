/* rlock run: a command under a lock. Everything is checked before anything is opened. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "report.h"
#include "request.h"

enum {
    OPTION_SHELL = OPTION_BEYOND_REQUEST,
    OPTION_NO_RENEW,
    OPTION_WAIT_DESCENDANTS,
    OPTION_REPORT_FD,
    OPTION_KEEP_CREDENTIALS
};

static const struct option_spec options[] = {
    REQUEST_OPTIONS,
    {.id = OPTION_SHELL,
     .name = "command",
     .letter = 'c',
     .argument = "STRING",
     .help = "run STRING with sh -c"},
    {.id = OPTION_NO_RENEW,
     .name = "no-renew",
     .help = "a fixed lease: the command is stopped before it ends (status 124)"},
    {.id = SETTING_AT_LEAST,
     .name = "at-least",
     .argument = "DUR",
     .help = "keep the lock this long even if COMMAND ends sooner; rlock does not stay for it"},
    {.id = SETTING_AT_MOST,
     .name = "at-most",
     .argument = "DUR",
     .help = "stop the command after DUR (status 124)"},
    {.id = SETTING_KILL_AFTER,
     .name = "kill-after",
     .argument = "DUR",
     .help = "between TERM and KILL when rlock stops the command (default 5s)"},
    {.id = SETTING_ON_LOST,
     .name = "on-lost",
     .argument = "ACTION",
     .help =
         "the lock is lost: stop the command (default), continue, or signal:NAME; the status is "
         "79 in every case"},
    {.id = OPTION_WAIT_DESCENDANTS,
     .name = "wait-descendants",
     .help = "hold the lock until background processes of COMMAND have ended, too"},
    {.id = OPTION_REPORT_FD,
     .name = "report-fd",
     .argument = "FD",
     .help = "write one line of JSON to FD at the end"},
    {.id = OPTION_KEEP_CREDENTIALS,
     .name = "keep-credentials",
     .help = "leave RLOCK_PASSWORD, and the password in RLOCK_URL, in the command's environment"},
    SETTINGS_OPTIONS,
    {0}};

struct run {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct request request;
    char *shell[4]; /* sh -c STRING */
    struct environment environment;
    struct report report;
    struct supervisor_plan plan;
};

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return true;
    return false;
}

/* As under flock, the command was written straight after the key. Shows the line as it should be. */
static int want_dashes(const struct run *run, int argc, char **argv)
{
    char line[512];
    size_t second = SIZE_MAX;

    for (int i = 1; i < argc; i++) {
        settings_blot(argv[i]);
        if (run->arguments.word_count > 1 && argv[i] == run->arguments.words[1])
            second = (size_t)i;
    }
    args_print(argv, (size_t)argc, second, line, sizeof line);
    command_error(run->command, "no COMMAND: put -- before it");
    if (strchr(line, '\\')) /* messages show it escaped: not to be pasted */
        say_hint("rlock %s [OPTIONS] KEY -- COMMAND", run->command->name);
    else
        say_hint("rlock %s%s", line, second == SIZE_MAX ? " -- COMMAND" : "");
    return STATUS_USAGE;
}

static int parse(struct run *run, int argc, char **argv)
{
    const struct arguments *given = &run->arguments;
    bool fine = args_parse(argc, argv, options, &run->arguments);
    const struct given_option *shell = command_option(given, OPTION_SHELL);

    if (command_option(given, OPTION_HELP))
        return STATUS_OK;
    if (given->word_count > 1 && !shell && !has_dashes(argc, argv))
        return want_dashes(run, argc, argv);
    if (!fine)
        return command_misused(run->command, "%s", given->fault);
    if (given->word_count == 0)
        return command_misused(run->command, "no KEY");
    if (shell && given->command && *given->command)
        return command_misused(run->command, "either -c or a COMMAND after --, not both");
    if (!shell && !given->command)
        return want_dashes(run, argc, argv);
    if (!shell && !*given->command)
        return command_misused(run->command, "no COMMAND after --");
    if (!shell && !**given->command)
        return command_misused(run->command, "COMMAND is empty");
    return STATUS_OK;
}

/* `rlock read` is `rlock run --read`. */
static int preset_of(const struct command *command)
{
    if (command == &command_read)
        return OPTION_SHARED;
    return command == &command_write ? OPTION_EXCLUSIVE : 0;
}

static int take_request(struct run *run)
{
    char fault[256];

    if (request_read(&run->request, &run->arguments, preset_of(run->command), fault, sizeof fault))
        return STATUS_OK;
    return command_misused(run->command, "%s", fault);
}

static int prepare_report(struct run *run)
{
    const struct given_option *option = command_option(&run->arguments, OPTION_REPORT_FD);
    char fault[256];

    if (!option)
        return STATUS_OK;
    const char *wrong = report_open(&run->report, option->value);
    if (wrong)
        return command_misused(run->command, "--report-fd '%.20s' %s", option->value, wrong);
    if (json_load(&run->report.json, fault, sizeof fault))
        return STATUS_OK;
    command_error(run->command, "%s", fault);
    return STATUS_SYSTEM;
}

static void choose_command(struct run *run)
{
    const struct given_option *shell = command_option(&run->arguments, OPTION_SHELL);
    static char sh[] = "sh", dash_c[] = "-c";

    run->plan.command = run->arguments.command;
    if (shell) {
        run->shell[0] = sh;
        run->shell[1] = dash_c;
        run->shell[2] = shell->value;
        run->plan.command = run->shell;
    }
}

static void fill_plan(struct run *run)
{
    const struct settings *settings = &run->settings;

    run->plan.at_most = settings->at_most;
    run->plan.kill_after = settings->kill_after;
    run->plan.on_lost = settings->on_lost;
    run->plan.lost_signal = settings->lost_signal;
    run->plan.wait_descendants = command_option(&run->arguments, OPTION_WAIT_DESCENDANTS);
    run->plan.environment = &run->environment;
    run->plan.agent = (struct agent_plan){
        .address = settings->address,
        .address_status = settings->address_status,
        .title = run->request.title,
        .kill_after = settings->kill_after,
        .guard = settings->on_lost == ON_LOST_STOP,
        .conflict_status = settings->conflict_status,
        .report_waiting = say_verbosity() != SAY_QUIET,
    };
    request_plan(&run->request, settings, &run->plan.agent.keeper);
    run->plan.agent.keeper.request.at_least = settings->at_least;
    run->plan.agent.keeper.renew = !command_option(&run->arguments, OPTION_NO_RENEW);
}

static void prepare_environment(struct run *run)
{
    const struct environment_lock lock = {.keys = run->request.keys,
                                          .key_count = run->request.key_count,
                                          .mode = run->request.mode,
                                          .owner = run->request.owner,
                                          .lease_ms = run->settings.lease / NS_PER_MS};
    bool keep = command_option(&run->arguments, OPTION_KEEP_CREDENTIALS) != NULL;

    environment_make(&run->environment, environ, &lock, keep);
}

static int prepare(struct run *run)
{
    int status = take_request(run);

    if (status == STATUS_OK &&
        !command_settings(run->command, &run->arguments, &run->settings, &status))
        return status;
    if (status == STATUS_OK)
        status = prepare_report(run);
    if (status != STATUS_OK)
        return status;
    choose_command(run);
    status =
        request_sign(&run->request, run->command, &run->settings, run->plan.command[0], getpid());
    if (status != STATUS_OK)
        return status;
    prepare_environment(run);
    fill_plan(run);
    return STATUS_OK;
}

static int perform(struct run *run)
{
    struct supervisor_outcome outcome = {0};

    supervisor_run(&run->plan, &outcome);
    if (run->report.fd >= 0 &&
        !report_write(&run->report, &outcome, &run->plan.agent.keeper.request))
        say_warning("%s: cannot write the report: %s", run->command->name, strerror(errno));
    return outcome.signal ? supervisor_die_of(outcome.signal) : outcome.status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct run all = {.command = command, .report = {.fd = -1}};
    int status = parse(&all, argc, argv);

    if (status == STATUS_OK && command_option(&all.arguments, OPTION_HELP))
        status = command_help(command);
    else if (status == STATUS_OK && (status = prepare(&all)) == STATUS_OK)
        status = perform(&all);
    request_free(&all.request);
    environment_free(&all.environment);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .usage = {"run [OPTIONS] KEY... -- COMMAND [ARG...]", "run [OPTIONS] KEY... -c STRING"},
    .example = "Example, a cron job that one of many hosts runs and the others skip:\n"
               "  rlock run -n -E 0 nightly -- /usr/local/bin/nightly\n",
    .options = options,
    .run = run,
};

const struct command command_read = {
    .name = "read",
    .summary = "run a command as one of many readers (run --read)",
    .usage = {"read [OPTIONS] KEY... -- COMMAND [ARG...]", "read [OPTIONS] KEY... -c STRING"},
    .example = "Example, backups side by side, but never while \"rlock write data\" runs:\n"
               "  rlock read data -- tar -cf /backup/data.tar /srv/data\n",
    .options = options + REQUEST_MODES,
    .run = run,
};

const struct command command_write = {
    .name = "write",
    .summary = "run a command alone, with no reader beside it (run --write)",
    .usage = {"write [OPTIONS] KEY... -- COMMAND [ARG...]", "write [OPTIONS] KEY... -c STRING"},
    .example = "Example, once everyone under \"rlock read data\" is done:\n"
               "  rlock write data -- ./migrate.sh\n",
    .options = options + REQUEST_MODES,
    .run = run,
};
