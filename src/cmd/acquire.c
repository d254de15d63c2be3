/* rlock acquire: a lock for a script that cannot be wrapped. */
#include "cmd/commands.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/text.h"
#include "cli/run_messages.h"
#include "os/child.h"
#include "os/file.h"
#include "run/environment.h"
#include "run/printer.h"
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

/* Takes the KEY and the options of the request. */
static int take_request(struct call *call)
{
    struct acquire *acquire = (struct acquire *)call;

    if (call->arguments.command)
        return command_misused(call, "takes no COMMAND; that is rlock run");
    if (call->arguments.word_count > 1)
        return command_misused(call, "takes one KEY");
    return request_take(&acquire->request, call, 0);
}

/* Checks the process id of --keep, and begins to watch that process before the lock is requested:
 * later, its number may be another's. */
static int take_keep(struct acquire *acquire)
{
    const char *value = command_value(&acquire->call, OPTION_KEEP);
    int64_t number;

    acquire->keep = value;
    if (!value)
        return STATUS_OK;
    if (strcmp(value, "0") == 0) { /* $PPID of what docker exec has started */
        command_error(&acquire->call, "--keep 0: the parent is outside of this container");
        say_hint("--keep 1 keeps the lock as long as the container runs");
        return STATUS_USAGE;
    }
    if (!decimal_parse(value, 1, INT_MAX, &number))
        return command_wrong(&acquire->call, "--keep", value, "is not a process id");
    int pid = (int)number;
    if (pid == getpid())
        return command_misused(&acquire->call, "--keep %d is this very process", pid);
    if (pid_watch_open(&acquire->watch, pid))
        return STATUS_OK;
    if (errno == ESRCH)
        return command_misused(&acquire->call, "--keep %d: no such process", pid);
    command_error(&acquire->call, "cannot watch process %d: %s", pid, strerror(errno));
    return STATUS_SYSTEM;
}

/* Appends the value in quotes for a shell. Returns the end. */
static char *quote_for_shell(const char *value, char *out)
{
    *out++ = '\'';
    for (; *value; value++) {
        if (*value == '\'')
            out = stpcpy(out, "'\\'");
        *out++ = *value;
    }
    return stpcpy(out, "'");
}

/* Writes what is printed of a grant, at most PRINTER_TEXT_SIZE bytes (printer_plan.compose): the
 * owner token, or with --export what a shell evaluates to have it in its environment. */
static void compose_text(void *arg, int64_t lease, const struct lock_grant *grants, char *text)
{
    struct acquire *acquire = arg;

    environment_grant(&acquire->environment, lease, grants);
    if (command_has(&acquire->call, OPTION_EXPORT)) {
        for (size_t i = 0; i < ENVIRONMENT_WORDS && acquire->environment.words[i]; i++) {
            const char *word = acquire->environment.words[i];
            size_t name = strcspn(word, "=") + 1;
            text += sprintf(text, "export %.*s", (int)name, word);
            text = stpcpy(quote_for_shell(word + name, text), "\n");
        }
        /* RLOCK_SLOT of another lock would be taken for this one's. */
        if (acquire->environment.lock->mode != LOCK_LIMIT && getenv("RLOCK_SLOT"))
            strcpy(text, "unset RLOCK_SLOT\n");
    } else {
        sprintf(text, "%s\n", acquire->request.owner);
    }
}

/* Takes the lock, and prints the token. With --keep, an agent stays behind as the renewer. */
static int execute_acquire(struct call *call)
{
    struct acquire *acquire = (struct acquire *)call;

    acquire->watch.io.fd = -1; /* nothing is watched yet */
    /* A process that stays behind or waits for long must not keep a lock of flock(1) among the
     * inherited descriptors. The settings, which may come from pipes among them, are read by now.
     */
    say_let_go();
    child_close_inherited();
    int status = request_judge(&acquire->request, call);
    if (status == STATUS_OK)
        status = take_keep(acquire);
    if (status == STATUS_OK && !acquire->keep)
        status = command_need(call, STORE_DETACHED);
    if (status == STATUS_OK) {
        /* Signs for the process that the lock is kept for, or else for the parent. */
        pid_t pid = acquire->keep ? acquire->watch.pid : getppid();
        char program[64];
        acquire->request.acquired = true;
        acquire->request.can_be_asked = acquire->keep;
        status = request_sign(&acquire->request, &acquire->call,
                              pid_watch_name(pid, program, sizeof program), pid);
    }
    if (status != STATUS_OK)
        return status;
    const struct settings *settings = &acquire->call.settings;
    struct agent_plan *agent = &acquire->plan.agent;
    environment_make(&acquire->environment, environ, &acquire->request.wanted, PASSWORDS_KEPT);
    run_messages_init(&acquire->messages, acquire->request.title, NULL);
    run_messages_of_request(&acquire->messages, &agent->keeper.request, settings);
    request_plan(&acquire->request.wanted, settings, &acquire->messages.events, agent);
    agent->keep = acquire->keep ? &acquire->watch : NULL;
    agent->keeper.renew = acquire->keep;
    agent->keeper.whole = true; /* the script is told how long it has the lock */
    acquire->plan.compose = compose_text;
    acquire->plan.arg = acquire;
    printer_run(&acquire->plan, &acquire->outcome);
    call->signal = acquire->outcome.signal;
    /* Ends at once: if it were killed between the confirmation and its end, the caller would take
     * that for a failure, and the renewer would keep the lock all the same. */
    if (acquire->keep && acquire->outcome.status == STATUS_OK && !call->signal &&
        printer_confirm(&acquire->plan, &acquire->outcome))
        _exit(STATUS_OK);
    return acquire->outcome.status;
}

#define EXIT_SIZE sizeof "(exit 255)"

/* Makes eval fail where rlock acquire --export has failed, and frees what it had. */
static void end_acquire(struct call *call)
{
    struct acquire *acquire = (struct acquire *)call;
    const char *const *words = (const char *const *)call->argv;
    int failed = call->signal ? 128 + call->signal : call->status;

    /* eval "" is 0. The words are searched, as a command line that makes no sense has failed, too.
     * A full pipe may never take the line: then a signal ends this. */
    if (failed && text_is_among(words, (size_t)call->argc, "--export")) {
        bool room = file_has_room(STDOUT_FILENO, EXIT_SIZE);
        if (!room)
            child_let_end();
        if (room || !call->signal)
            dprintf(STDOUT_FILENO, "(exit %d)\n", failed);
    }
    if (acquire->keep)
        pid_watch_close(&acquire->watch);
    free(acquire->request.who);
    environment_free(&acquire->environment);
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
    .act = execute_acquire,
    .end = end_acquire,
};
