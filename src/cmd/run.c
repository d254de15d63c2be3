/* rlock run: a command under a lock. Everything is checked before anything is opened. */
#include "cmd/commands.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/text.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "cli/not_executed.h"
#include "cli/run_messages.h"
#include "lock/lock.h"
#include "os/file.h"
#include "run/supervisor.h"
#include "store/url.h"

enum { OPTION_SHELL = OPTION_BEYOND_REQUEST, OPTION_REPORT_FD };

/* `rlock read` and `rlock write` have all but the modes. */
static const struct option_spec options_without_modes[] = {
    OPTION(OPTION_ANY, "any", NULL,
           "hold one of the KEYs, the first that is free (RLOCK_KEY says which)"),
    OPTION(OPTION_TAKE, "take", "N", "with --any: N of the KEYs"),
    SETTING(NO_REENTRANT),
    {.table = request_waiting},
    SETTING(UNLESS_DONE),
    {.heading = "Time"},
    SETTING(LEASE),
    SETTING(NO_RENEW),
    SETTING(AT_LEAST),
    SETTING(AT_MOST),
    {.heading = "The command"},
    OPTION(OPTION_SHELL, "command", "STRING", "run STRING with sh -c", .letter = 'c'),
    SETTING(WAIT_DESCENDANTS),
    SETTING(CGROUP),
    SETTING(KEEP_CREDENTIALS),
    {.heading = "When something fails"},
    SETTING(KILL_AFTER),
    SETTING(ON_LOST),
    SETTING(STOP),
    SETTING(NOTIFY),
    SETTING(NOTIFY_AFTER),
    OPTION(OPTION_REPORT_FD, "report-fd", "FD", "write one line of JSON to FD at the end"),
    {.table = request_rest},
    SETTINGS_OPTIONS,
    {0}};

static const struct option_spec options[] = {
    {.heading = "How many"}, {.table = request_modes}, {.table = options_without_modes}, {0}};

static const struct option_spec read_write_options[] = {
    {.heading = "How many"}, {.table = options_without_modes}, {0}};

struct run {
    struct call call;
    struct request request;
    char *shell[4]; /* sh -c STRING */
    struct environment environment;
    int report_fd; /* of --report-fd; -1: none */
    struct run_messages messages;
    struct supervisor_plan plan;
};

/* -- the report ------------------------------------------------------------------------------- */

/* Gives *report_fd the descriptor for the report: the open one that "text" names, which the command
 * does not inherit; or a copy of 0 to 2, which it does. Returns NULL, or what is wrong with the
 * text, a constant. */
static const char *report_open(int *report_fd, const char *text)
{
    int64_t number;

    if (!decimal_parse(text, 0, INT_MAX, &number))
        return "is not the number of a file descriptor";
    int fd = (int)number;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return "is not open";
    if ((flags & O_ACCMODE) == O_RDONLY)
        return "is not open for writing";
    if (fd <= STDERR_FILENO)
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        fd = -1;
    *report_fd = fd;
    return fd < 0 ? "cannot be copied" : NULL;
}

static const char *const outcome_names[] = {
    [OUTCOME_COMPLETED] = "completed",
    [OUTCOME_NOT_ACQUIRED] = "not-acquired",
    [OUTCOME_LOST] = "lost",
    [OUTCOME_TIMED_OUT] = "timed-out",
    [OUTCOME_NOT_EXECUTED] = "not-executed",
    [OUTCOME_INTERRUPTED] = "interrupted",
    [OUTCOME_FAILED] = "failed",
};

/* Returns how the run ended, in the form that the store remembers. */
static struct lock_end end_of(const struct supervisor_outcome *outcome)
{
    struct lock_end end = {.how = LOCK_USED, .known = outcome->outcome == OUTCOME_COMPLETED};

    if (outcome->outcome == OUTCOME_LOST)
        end.how = outcome->revoked ? LOCK_REVOKED : LOCK_LOST;
    if (outcome->outcome == OUTCOME_TIMED_OUT)
        end.how = LOCK_TIMED_OUT;
    end.signal = outcome->command_signal;
    end.status = outcome->command_status;
    return end;
}

/* Adds a member with a value for each key held: that value for one key, an array for several. Takes
 * the values over. */
static void put_each(json_t *object, const char *name, json_t *const *values, size_t count)
{
    json_t *array = count == 1 ? values[0] : jansson.array();

    for (size_t i = 0; count != 1 && i < count; i++)
        jansson.array_append_new(array, values[i]);
    jansson.object_set_new(object, name, array);
}

/* Adds the members about the lock to the report. Of several KEYs each is a list; of a lock that was
 * not granted, all KEYs with one null in place of fences and slots. */
static void put_lock(json_t *object, const struct supervisor_outcome *outcome,
                     const struct acquire_request *request)
{
    bool granted = outcome->granted, limited = request->mode == LOCK_LIMIT;
    json_t *keys[LOCK_KEYS_MAX] = {NULL}, *fences[LOCK_KEYS_MAX] = {NULL};
    json_t *slots[LOCK_KEYS_MAX] = {NULL};
    struct held_keys held;

    held_keys_choose(&held, request->keys, request->key_count, granted ? outcome->grants : NULL);
    for (size_t i = 0; i < held.count; i++) {
        keys[i] = jansson.string(held.keys[i]);
        fences[i] = granted ? jansson.integer((json_int_t)held.grants[i].fence) : jansson.null();
        slots[i] = granted && limited ? jansson.integer(held.grants[i].slot) : jansson.null();
    }
    put_each(object, "key", keys, held.count);
    json_put_text(object, "mode", lock_mode_name(request->mode));
    json_put_text(object, "owner", request->owner);
    put_each(object, "fence", fences, granted ? held.count : 1);
    if (limited)
        put_each(object, "slot", slots, granted ? held.count : 1);
}

/* Writes the line of --report-fd after the run. Returns 0, or an errno. */
static int report_write(int fd, const struct supervisor_outcome *outcome,
                        const struct acquire_request *request)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    struct strbuf line ENDED_BY(strbuf_free) = {0};
    json_t *object = jansson.object();
    bool held = outcome->granted;
    const struct lock_end end = end_of(outcome);

    json_put_text(object, "outcome", outcome_names[outcome->outcome]);
    json_put_text(object, "result", run_result(&end));
    json_put_known(object, "exit_status", outcome->command_status, outcome->command_status >= 0);
    json_put_text(object, "signal",
                  outcome->command_signal > 0 ? SIGNAL_TEXT(outcome->command_signal) : NULL);
    json_put_number(object, "waited_ms", outcome->waited / NS_PER_MS);
    json_put_known(object, "held_ms", outcome->held / NS_PER_MS, held);
    put_lock(object, outcome, request);
    json_write(&line, object);
    sigaction(SIGPIPE, &ignore, &before);
    /* The write waits for the reader. Signals end this process meanwhile: the lock is released. */
    if (!file_has_room(fd, line.size))
        child_let_end();
    int error = file_write(fd, line.text, line.size);
    sigaction(SIGPIPE, &before, NULL);
    return error;
}

/* -- the command line -------------------------------------------------------------------------- */

/* Whether a word was "--" before a text program made other dashes of it: it has nothing but dashes,
 * and one of those. */
static bool was_dashes(const char *word)
{
    const char *rest = word + strspn(word, "-");
    size_t length, found = 0;

    for (; (length = args_dash_length(rest)) > 0; found++) {
        rest += length;
        rest += strspn(rest, "-");
    }
    return found > 0 && !*rest;
}

/* Reports a "--" that a text program has changed, and hints at the line as it was before, or at
 * "instead" (command_hint_line()). False: there is none. */
static bool report_changed_dashes(const struct call *call, const char *instead)
{
    static char dashes[] = "--";
    struct strbuf line ENDED_BY(strbuf_free) = {0};
    int i = 1;

    while (i < call->argc && !was_dashes(call->argv[i]))
        i++;
    if (i == call->argc)
        return false;
    command_error(call, "no COMMAND: '%s' is another dash than --", call->argv[i]);
    call->argv[i] = dashes;
    args_print(call->argv, (size_t)call->argc, SIZE_MAX, &line);
    command_hint_line(&line, "", instead);
    return true;
}

/* Refuses a line without a "--", where COMMAND follows KEY as with flock(1), and hints at the line
 * as it should be. Returns STATUS_USAGE. */
static int refuse_without_dashes(const struct call *call)
{
    const struct arguments *given = &call->arguments;
    struct strbuf line ENDED_BY(strbuf_free) = {0};
    char instead[64];
    size_t second = SIZE_MAX; /* where the second word stands, the first of COMMAND */

    snprintf(instead, sizeof instead, "%s [OPTIONS] KEY -- COMMAND", call->command->name);
    for (int i = 1; i < call->argc; i++) {
        urls_blot(call->argv[i]);
        if (given->word_count > 1 && call->argv[i] == given->words[1])
            second = (size_t)i;
    }
    if (report_changed_dashes(call, instead))
        return STATUS_USAGE;
    args_print(call->argv, (size_t)call->argc, second, &line);
    command_error(call, "no COMMAND: put -- before it");
    command_hint_line(&line, second == SIZE_MAX ? " -- COMMAND" : "", instead);
    return STATUS_USAGE;
}

/* Parses the arguments. Without a "--", a forgotten one is the likeliest mistake, so it is named
 * first: options of the COMMAND would be called unknown ones of rlock. */
static int parse_run(struct call *call)
{
    const struct arguments *given = &call->arguments;
    bool fine = args_parse(call->argc, call->argv, options, &call->arguments);
    const struct given_option *shell = command_option(call, OPTION_SHELL);
    const char *const *words = (const char *const *)call->argv;
    bool shell_is_meant = shell; /* a -c of rlock, not of a COMMAND whose "--" was changed */

    if (command_has(call, OPTION_HELP))
        return STATUS_OK;
    for (size_t i = 0; i < given->word_count; i++)
        shell_is_meant &= !was_dashes(given->words[i]);
    if (given->word_count > 1 && !shell_is_meant && !text_is_among(words, (size_t)call->argc, "--"))
        return refuse_without_dashes(call);
    if (!fine)
        return command_misused(call, "%s", given->fault);
    if (given->word_count == 0) {
        char fault[256]; /* a wrong value of an option is reported before the missing KEY */
        if (settings_read(&call->settings, &call->arguments, fault, sizeof fault) == STATUS_USAGE)
            return command_misused(call, "%s", fault);
        return command_misused(call, "no KEY");
    }
    /* The words of a STRING that is not quoted look like KEYs. */
    if (shell && shell->words > 0 && shell->words < given->word_count) {
        command_error(call, "KEYs on both sides of -c: is STRING not quoted?");
        say_hint("quote the command, or put KEYs before -c");
        return STATUS_USAGE;
    }
    if (shell && given->command && *given->command)
        return command_misused(call, "either -c or a COMMAND after --, not both");
    if (!shell && !given->command)
        return refuse_without_dashes(call);
    if (!shell && !*given->command)
        return command_misused(call, "no COMMAND after --");
    if (!shell && !**given->command)
        return command_misused(call, "COMMAND is empty");
    return STATUS_OK;
}

/* Warns of a COMMAND that is taken for KEYs and a STRING, as in "KEY sh -c STRING". */
static void doubt_keys(const struct call *call)
{
    const struct given_option *shell = command_option(call, OPTION_SHELL);

    for (size_t i = 1; shell && i < shell->words; i++)
        if (is_program(call->arguments.words[i])) {
            say_warning("%s: '%s' is a KEY here; a COMMAND comes after --", call->command->name,
                        URLS_TEXT(call->arguments.words[i]));
            return;
        }
}

/* Takes the KEYs and the options of the request. */
static int take_request(struct call *call)
{
    struct run *run = (struct run *)call;
    doubt_keys(call);
    /* `rlock read` is `rlock run --read`. */
    int preset = call->command == &command_read    ? OPTION_SHARED
                 : call->command == &command_write ? OPTION_EXCLUSIVE
                                                   : 0;

    run->report_fd = -1;
    return request_take(&run->request, call, preset);
}

/* -- the run ----------------------------------------------------------------------------------- */

/* Fills in the plans that the supervisor and the agent follow. */
static void fill_plan(struct run *run)
{
    const struct settings *settings = &run->call.settings;
    const struct run_events *events = &run->messages.events;
    struct job_plan *job = &run->plan.job;
    struct agent_plan *agent = &run->plan.agent;

    request_plan(&run->request.wanted, settings, events, agent);
    agent->keeper.at_least = settings->at_least;
    agent->keeper.kill_after = job->kill_after;
    agent->keeper.renew = !settings->no_renew;
    agent->job = job;
    job->renew = agent->keeper.renew;
    job->environment = &run->environment;
    job->events = events;
    run_messages_init(&run->messages, run->request.title, job->command[0]);
    run_messages_of_request(&run->messages, &agent->keeper.request, settings);
}

/* Runs the command as the supervisor, and writes the report. Until supervisor_run() nothing is
 * opened at the store. After a signal that ended the run, call->signal has it. */
static int execute_run(struct call *call)
{
    struct run *run = (struct run *)call;
    struct supervisor_outcome outcome = {0};
    const char *report = command_value(call, OPTION_REPORT_FD);

    if (call->settings.unless_done && command_has(call, OPTION_ANY))
        return command_refuse_setting(call, SETTING_UNLESS_DONE,
                                      "does not go with --any: each KEY has its own history");
    run->request.wanted.unless_done = call->settings.unless_done;
    int status = request_judge(&run->request, call);
    /* Either fails before the command runs: the descriptor, and the library that writes JSON. */
    if (status == STATUS_OK && report) {
        const char *wrong = report_open(&run->report_fd, report);
        status =
            wrong ? command_wrong(call, "--report-fd", report, wrong) : command_load_json(call);
    }
    if (status != STATUS_OK)
        return status;
    const struct given_option *shell = command_option(&run->call, OPTION_SHELL);
    static char sh[] = "sh", dash_c[] = "-c";
    run->plan.job = run->call.settings.job;
    run->plan.job.command = run->call.arguments.command;
    if (shell) {
        run->shell[0] = sh;
        run->shell[1] = dash_c;
        run->shell[2] = shell->value;
        run->plan.job.command = run->shell;
    }
    run->request.can_be_asked = true;
    status = request_sign(&run->request, call, run->plan.job.command[0], getpid());
    if (status != STATUS_OK)
        return status;
    environment_make(&run->environment, environ, &run->request.wanted,
                     call->settings.keep_credentials ? PASSWORDS_KEPT : PASSWORDS_REMOVED);
    fill_plan(run);
    supervisor_run(&run->plan, &outcome);
    if (outcome.outcome == OUTCOME_NOT_EXECUTED)
        not_executed_hint(outcome.status, run->plan.job.command[0], "-c");
    const struct acquire_request *request = &run->plan.agent.keeper.request;
    int error = run->report_fd < 0 ? 0 : report_write(run->report_fd, &outcome, request);
    if (error)
        say_warning("%s: cannot write the report: %s", call->command->name, strerror(error));
    call->signal = outcome.signal;
    return outcome.status;
}

static void end_run(struct call *call)
{
    struct run *run = (struct run *)call;

    free(run->request.who);
    environment_free(&run->environment);
}

/* The records differ in their words. */
#define RUNS                                                                                       \
    .size = sizeof(struct run), .parse = parse_run, .check = take_request, .act = execute_run,     \
    .end = end_run

const struct command command_run = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .usage = {"run [OPTIONS] KEY... -- COMMAND [ARG...]", "run [OPTIONS] KEY... -c STRING"},
    .example = "Example, a deployment that waits until no other one runs:\n"
               "  rlock run deploy -- ./deploy.sh production\n"
               "\n"
               "Example, a line in the crontab of many hosts: one of them runs the job, and the\n"
               "others skip it, even one whose clock is up to five minutes late:\n"
               "  0 3 * * *  rlock run -q -n -E 0 --at-least 5m nightly -- ./nightly.sh\n",
    .options = options,
    RUNS,
};

const struct command command_read = {
    .name = "read",
    .summary = "run a command as one of many readers (run --read)",
    .usage = {"read [OPTIONS] KEY... -- COMMAND [ARG...]", "read [OPTIONS] KEY... -c STRING"},
    .example = "Example, backups side by side, but never while \"rlock write data\" runs:\n"
               "  rlock read data -- tar -cf /backup/data.tar /srv/data\n",
    .options = read_write_options,
    RUNS,
};

const struct command command_write = {
    .name = "write",
    .summary = "run a command with no reader beside it (run --write)",
    .usage = {"write [OPTIONS] KEY... -- COMMAND [ARG...]", "write [OPTIONS] KEY... -c STRING"},
    .example = "Example, once everyone under \"rlock read data\" is done:\n"
               "  rlock write data -- ./migrate.sh\n",
    .options = read_write_options,
    RUNS,
};
