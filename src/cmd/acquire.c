/* rlock acquire: a lock for a script that cannot be wrapped. */
#include "cmd/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "cli/request.h"
#include "cli/run_messages.h"
#include "os/child.h"
#include "run/acquisition.h"
#include "run/environment.h"
#include "store/urls.h"

enum { OPTION_EXPORT = OPTION_BEYOND_REQUEST, OPTION_KEEP };

static const struct option_spec options[] = {
    {.id = OPTION_EXPORT,
     .name = "export",
     .help = "print shell commands that set RLOCK_OWNER, RLOCK_FENCE and so on, for eval"},
    {.id = OPTION_KEEP,
     .name = "keep",
     .argument = "PID",
     .help = "leave a process behind that renews the lock until it is released or PID has ended; "
             "otherwise nothing renews it"},
    REQUEST_HOW_MANY,
    {.table = request_modes},
    SETTING(NO_REENTRANT),
    {.table = request_waiting},
    {.heading = "Time"},
    SETTING(LEASE),
    {.table = request_rest},
    SETTINGS_OPTIONS,
    {0}};

struct acquire {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct request request;
    struct environment environment;
    struct pid_watch watch;
    bool export, keep;
    struct run_messages messages;
    struct acquisition_plan plan;
    struct acquisition_outcome outcome;
};

static int take_request(struct acquire *all)
{
    char fault[256];

    all->export = command_option(&all->arguments, OPTION_EXPORT) != NULL;
    if (all->arguments.command)
        return command_misused(all->command, "takes no COMMAND; that is rlock run");
    if (all->arguments.word_count > 1)
        return command_misused(all->command, "takes one KEY");
    if (!request_read(&all->request, &all->arguments, 0, fault, sizeof fault))
        return command_misused(all->command, "%s", fault);
    return STATUS_OK;
}

static int take_keep(struct acquire *all)
{
    const struct given_option *option = command_option(&all->arguments, OPTION_KEEP);
    char shown[URLS_SHOWN_SIZE];
    int64_t number;

    if (!option)
        return STATUS_OK;
    all->keep = true;
    if (!decimal_parse(option->value, 1, INT_MAX, &number))
        return command_misused(all->command, "--keep '%s' is not a process id",
                               urls_show(option->value, shown));
    int pid = (int)number;
    if (pid == getpid())
        return command_misused(all->command, "--keep %d is this very process", pid);
    if (pid_watch_open(&all->watch, pid))
        return STATUS_OK;
    if (errno == ESRCH)
        return command_misused(all->command, "--keep %d: no such process", pid);
    command_error(all->command, "cannot watch process %d: %s", pid, strerror(errno));
    return STATUS_SYSTEM;
}

/* Signs for the process that the lock is kept for, or else for the parent. */
static int sign(struct acquire *all)
{
    pid_t pid = all->keep ? all->watch.pid : getppid();
    char program[64];

    all->request.acquired = true;
    all->request.hears = all->keep;
    return request_sign(&all->request, all->command, &all->settings,
                        pid_watch_name(pid, program, sizeof program), pid);
}

static char *quote(const char *value, char *out)
{
    *out++ = '\'';
    for (; *value; value++) {
        if (*value == '\'')
            out = stpcpy(out, "'\\'");
        *out++ = *value;
    }
    return stpcpy(out, "'");
}

/* RLOCK_SLOT of another lock would be taken for this one's. */
static void compose_exports(const struct environment *environment, char *text)
{
    for (size_t i = 0; i < ENVIRONMENT_WORDS && environment->words[i]; i++) {
        const char *word = environment->words[i];
        size_t name = strcspn(word, "=") + 1;
        text += sprintf(text, "export %.*s", (int)name, word);
        text = stpcpy(quote(word + name, text), "\n");
    }
    if (!environment->limited && getenv("RLOCK_SLOT"))
        strcpy(text, "unset RLOCK_SLOT\n");
}

static void compose(void *arg, int64_t lease, const struct lock_grant *grants, char *text)
{
    struct acquire *all = arg;

    environment_grant(&all->environment, lease, grants);
    if (all->export)
        compose_exports(&all->environment, text);
    else
        sprintf(text, "%s\n", all->request.owner);
}

static void fill_plan(struct acquire *all)
{
    const struct settings *settings = &all->settings;
    const struct environment_lock lock = {.keys = all->request.keys,
                                          .key_count = all->request.key_count,
                                          .mode = all->request.mode,
                                          .owner = all->request.owner};

    environment_make(&all->environment, environ, &lock, true);
    struct agent_plan *agent = &all->plan.agent;
    *agent = (struct agent_plan){.address = settings->address,
                                 .address_status = &settings->address_status,
                                 .keep = all->keep ? &all->watch : NULL,
                                 .conflict_status = settings->conflict_status,
                                 .events = &all->messages.events};
    all->plan.compose = compose;
    all->plan.arg = all;
    run_messages_init(&all->messages, all->request.title, NULL);
    run_messages_of_request(&all->messages, &agent->keeper.request, settings);
    request_plan(&all->request, settings, &agent->keeper);
    agent->keeper.renew = all->keep;
}

/* Closes inherited descriptors: a process that stays behind or waits for long must not keep locks
 * of flock(1) among them. Settings may come from pipes among them, so this follows reading them. */
static void close_inherited(void)
{
    say_let_go();
    child_close_inherited();
}

static int prepare(struct acquire *all)
{
    int status = take_request(all);

    if (status == STATUS_OK &&
        command_settings(all->command, &all->arguments, &all->settings, &status)) {
        close_inherited();
        status = request_judge(&all->request, all->command, &all->settings);
    }
    if (status == STATUS_OK)
        status = take_keep(all);
    if (status == STATUS_OK && !all->keep && !store_can(&all->settings.address, STORE_DETACHED))
        status = command_lacks(all->command, &all->settings.address, STORE_DETACHED);
    if (status == STATUS_OK)
        status = sign(all);
    if (status == STATUS_OK)
        fill_plan(all);
    return status;
}

/* Makes eval fail where this failed: eval "" is 0. */
static void print_failure(const struct acquire *all)
{
    int signo = all->outcome.signal;
    char text[24];
    int length =
        snprintf(text, sizeof text, "(exit %d)\n", signo ? 128 + signo : all->outcome.status);

    if (write(STDOUT_FILENO, text, (size_t)length) < 0)
        return; /* the status says it, too */
}

/* True for --export, even if the rest of the command line makes no sense. */
static bool is_for_eval(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--export") == 0)
            return true;
    return false;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct acquire all = {.command = command, .watch = {.io = {.fd = -1}}};
    int *status = &all.outcome.status;

    if (command_parse(command, argc, argv, &all.arguments, status)) {
        *status = prepare(&all);
        if (*status == STATUS_OK)
            acquisition_run(&all.plan, &all.outcome);
    }
    /* At once: if this process were killed after that, its renewer would stay without a token. */
    if (all.keep && *status == STATUS_OK && !all.outcome.signal &&
        acquisition_confirm(&all.plan, &all.outcome))
        _exit(STATUS_OK);
    if (is_for_eval(argc, argv) && (*status != STATUS_OK || all.outcome.signal))
        print_failure(&all);
    pid_watch_close(&all.watch);
    request_free(&all.request);
    environment_free(&all.environment);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return all.outcome.signal ? supervisor_die_of(all.outcome.signal) : *status;
}

const struct command command_acquire = {
    .name = "acquire",
    .summary = "take a lock in a script that cannot be wrapped",
    .usage = {"acquire [OPTIONS] KEY"},
    .example = "Example:\n"
               "  token=$(rlock acquire --keep $$ deploy) || exit\n"
               "  ./deploy.sh production\n"
               "  rlock release --owner \"$token\" deploy\n",
    .options = options,
    .run = run,
};
