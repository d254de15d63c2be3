/* rlock acquire: a lock for a script that cannot be wrapped. */
#include "cmd/commands.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/text.h"
#include "cli/run_messages.h"
#include "run/printer.h"
#include "run/environment.h"
#include "store/url.h"

enum { OPTION_EXPORT = OPTION_BEYOND_REQUEST, OPTION_KEEP };

static const struct option_spec options[] = {
    OPTION(OPTION_EXPORT, "export", NULL,
           "print shell commands that set RLOCK_OWNER, RLOCK_FENCE and so on, for eval"),
    OPTION(OPTION_KEEP, "keep", "PID",
           "leave a process behind that renews the lock until it is released or PID has ended; "
           "otherwise nothing renews it"),
    {.heading = "How many"},
    {.table = request_modes},
    SETTING(NO_REENTRANT),
    {.table = request_waiting},
    {.heading = "Time"},
    SETTING(LEASE),
    {.table = request_rest},
    SETTINGS_OPTIONS,
    {0}};

struct acquire {
    struct call call;
    struct request request;
    struct environment environment;
    struct pid_watch watch;
    bool keep;
    struct run_messages messages;
    struct printer_plan plan;
    struct printer_outcome outcome;
};

static int take_request(struct call *call)
{
    struct acquire *all = (struct acquire *)call;

    if (call->arguments.command)
        return command_misused(call, "takes no COMMAND; that is rlock run");
    if (call->arguments.word_count > 1)
        return command_misused(call, "takes one KEY");
    return request_take(&all->request, call, 0);
}

static int take_keep(struct acquire *all)
{
    const char *value = command_value(&all->call, OPTION_KEEP);
    int64_t number;

    all->keep = value;
    if (!value)
        return STATUS_OK;
    if (!decimal_parse(value, 1, INT_MAX, &number))
        return command_wrong(&all->call, "--keep", value, "is not a process id");
    int pid = (int)number;
    if (pid == getpid())
        return command_misused(&all->call, "--keep %d is this very process", pid);
    if (pid_watch_open(&all->watch, pid))
        return STATUS_OK;
    if (errno == ESRCH)
        return command_misused(&all->call, "--keep %d: no such process", pid);
    command_error(&all->call, "cannot watch process %d: %s", pid, strerror(errno));
    return STATUS_SYSTEM;
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

static void compose(void *arg, int64_t lease, const struct lock_grant *grants, char *text)
{
    struct acquire *all = arg;

    environment_grant(&all->environment, lease, grants);
    if (command_has(&all->call, OPTION_EXPORT)) {
        /* RLOCK_SLOT of another lock would be taken for this one's. */
        for (size_t i = 0; i < ENVIRONMENT_WORDS && all->environment.words[i]; i++) {
            const char *word = all->environment.words[i];
            size_t name = strcspn(word, "=") + 1;
            text += sprintf(text, "export %.*s", (int)name, word);
            text = stpcpy(quote(word + name, text), "\n");
        }
        if (all->environment.lock->mode != LOCK_LIMIT && getenv("RLOCK_SLOT"))
            strcpy(text, "unset RLOCK_SLOT\n");
    } else {
        sprintf(text, "%s\n", all->request.owner);
    }
}

/* Closes inherited descriptors: a process that stays behind or waits for long must not keep locks
 * of flock(1) among them. Settings may come from pipes among them, so this follows reading them. */
static int act(struct call *call)
{
    struct acquire *all = (struct acquire *)call;

    all->watch.io.fd = -1;
    say_let_go();
    child_close_inherited();
    int status = request_judge(&all->request, call);
    if (status == STATUS_OK)
        status = take_keep(all);
    if (status == STATUS_OK && !all->keep)
        status = command_need(call, STORE_DETACHED);
    if (status == STATUS_OK) {
        /* Signs for the process that the lock is kept for, or else for the parent. */
        pid_t pid = all->keep ? all->watch.pid : getppid();
        char program[64];
        all->request.acquired = true;
        all->request.hears = all->keep;
        status = request_sign(&all->request, &all->call,
                              pid_watch_name(pid, program, sizeof program), pid);
    }
    if (status != STATUS_OK)
        return status;
    const struct settings *settings = &all->call.settings;
    struct agent_plan *agent = &all->plan.agent;
    environment_make(&all->environment, environ, &all->request.wanted, true);
    run_messages_init(&all->messages, all->request.title, NULL);
    run_messages_of_request(&all->messages, &agent->keeper.request, settings);
    request_plan(&all->request.wanted, settings, &all->messages.events, agent);
    agent->keep = all->keep ? &all->watch : NULL;
    agent->keeper.renew = all->keep;
    agent->keeper.whole = true;
    all->plan.compose = compose;
    all->plan.arg = all;
    printer_run(&all->plan, &all->outcome);
    call->signal = all->outcome.signal;
    /* At once: if this process were killed after that, its renewer would stay without a token. */
    if (all->keep && all->outcome.status == STATUS_OK && !call->signal &&
        printer_confirm(&all->plan, &all->outcome))
        _exit(STATUS_OK);
    return all->outcome.status;
}

static void end(struct call *call)
{
    struct acquire *all = (struct acquire *)call;
    const char *const *words = (const char *const *)call->argv;
    int failed = call->signal ? 128 + call->signal : call->status;

    /* Makes eval fail where this failed, as eval "" is 0; also if the rest of the command line
     * makes no sense. */
    if (failed && text_is_among(words, (size_t)call->argc, "--export"))
        dprintf(STDOUT_FILENO, "(exit %d)\n", failed);
    if (all->keep)
        pid_watch_close(&all->watch);
    free(all->request.who);
    environment_free(&all->environment);
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
    .size = sizeof(struct acquire),
    .check = take_request,
    .act = act,
    .end = end,
};
