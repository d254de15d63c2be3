/* rlock fence: the resource's side of a fencing token. No store is asked. */
#include "cmd/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "cli/not_executed.h"
#include "cli/run_messages.h"
#include "os/token_file.h"
#include "run/fenced.h"
#include "store/url.h"

enum { OPTION_TOKEN = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_TOKEN, "token", "N", "the fencing token to compare (default: RLOCK_FENCE)"),
    NO_WAIT_AS("do not wait while another fence has PATH locked (status 75)"),
    SETTING(WAIT),
    SETTINGS_OPTIONS,
    {0}};

struct fence {
    struct call call;
    const char *path;
    int64_t token;
    int64_t wait; /* ns, or TOKEN_FILE_FOREVER */
    struct token_file file;
    bool not_executed; /* its command */
};

/* -- the arguments --------------------------------------------------------------------------- */

/* Takes -n and -w, of which the last one counts. */
static int take_wait(struct fence *fence)
{
    const struct arguments *given = &fence->call.arguments;

    fence->wait = TOKEN_FILE_FOREVER;
    for (size_t i = 0; i < given->option_count; i++) {
        const struct given_option *option = &given->options[i];
        if (option->id == OPTION_NO_WAIT)
            fence->wait = 0;
        else if (option->id == SETTING_WAIT && !duration_parse(option->value, &fence->wait))
            return command_wrong(&fence->call, "--wait", option->value,
                                 duration_fault(option->value, DURATION_FAULT));
    }
    return STATUS_OK;
}

static int refuse_token(const struct fence *fence, const char *why, const char *hint)
{
    command_error(&fence->call, "%s: %s", fence->path, why);
    say_hint("%s", hint);
    return STATUS_CONFIG;
}

/* Takes the token, from --token or RLOCK_FENCE. As --token "$RLOCK_FENCE" passes a variable on, an
 * empty word, or several, are not misuse. */
static int take_token(struct fence *fence)
{
    const char *option = command_value(&fence->call, OPTION_TOKEN);
    const char *word = option ? option : getenv("RLOCK_FENCE");

    if (!word || !*word)
        return refuse_token(fence,
                            option ? "the token is empty" : "no token: RLOCK_FENCE is not set",
                            "rlock run sets RLOCK_FENCE; over ssh: --token \"$RLOCK_FENCE\"");
    if (strchr(word, ' '))
        return refuse_token(fence, "several tokens, of several keys",
                            "--token with the token of the KEY that protects it");
    if (decimal_parse(word, 0, INT64_MAX, &fence->token))
        return STATUS_OK;
    if (option)
        return command_wrong(&fence->call, "--token", word, "is not a fencing token");
    command_error(&fence->call, "RLOCK_FENCE '%s' is not a fencing token", URLS_TEXT(word));
    return STATUS_CONFIG;
}

static int check_fence(struct call *call)
{
    struct fence *fence = (struct fence *)call;
    const struct arguments *given = &call->arguments;

    if (given->word_count == 0)
        return command_misused(call, "no PATH");
    if (given->word_count > 1 && !given->command)
        return command_misused(call, "takes one PATH; put -- before COMMAND");
    if (given->word_count > 1)
        return command_misused(call, "takes one PATH");
    if (!*given->words[0])
        return command_misused(call, "PATH is empty");
    if (given->command && !*given->command)
        return command_misused(call, "no COMMAND after --");
    if (given->command && !**given->command)
        return command_misused(call, "COMMAND is empty");
    fence->path = given->words[0];
    int status = take_wait(fence);
    return status == STATUS_OK ? take_token(fence) : status;
}

/* -- the file -------------------------------------------------------------------------------- */

static void tell_wait(const char *path)
{
    say_warning("fence: waiting for %s, which another fence has locked", path);
}

/* Reports why the file cannot be used. Returns the status. */
static int refuse_fence(const struct fence *fence, int error)
{
    switch (error) {
    case EWOULDBLOCK:
        command_error(&fence->call, "%s: another fence has it locked", fence->path);
        return STATUS_NOT_ACQUIRED;
    case EBADMSG:
        command_error(&fence->call,
                      "%s: not a file of rlock fence: it holds something else than a token",
                      fence->path);
        return STATUS_CONFIG;
    case EINVAL:
        command_error(&fence->call, "%s: not a regular file", fence->path);
        return STATUS_CONFIG;
    default:
        command_error(&fence->call, "%s: %s", fence->path, strerror(error));
        return STATUS_SYSTEM;
    }
}

/* Lets a token pass that is at least the one in the file, and writes it there. The file stays
 * locked until the command ends, so that no newer token passes meanwhile. */
static int pass_fence(struct fence *fence)
{
    int error = token_file_open(&fence->file, fence->path, fence->wait, tell_wait);

    if (error)
        return refuse_fence(fence, error);
    if (!fence->file.is_empty && fence->token < fence->file.number) {
        command_error(&fence->call,
                      "%s: token %" PRId64 " is older than %" PRId64 ", which was here before",
                      fence->path, fence->token, fence->file.number);
        return STATUS_LOST;
    }
    error = token_file_write(&fence->file, fence->token);
    if (error)
        return refuse_fence(fence, error);
    say_detail("fence: %s: token %" PRId64, fence->path, fence->token);
    return STATUS_OK;
}

/* Runs COMMAND while this process has the file locked, without a store, a lease or a deadline.
 * Returns the status of the command. */
static int run_fenced(struct fence *fence)
{
    char token[24];
    struct run_messages messages;
    struct fenced_outcome outcome;

    /* The token may have come by --token, and the command may need it. */
    snprintf(token, sizeof token, "%" PRId64, fence->token);
    setenv("RLOCK_FENCE", token, 1);
    struct environment environment;
    environment_make(&environment, environ, NULL, PASSWORDS_KEPT);
    run_messages_init(&messages, fence->path, fence->call.arguments.command[0]);
    const struct fenced_plan plan = {.job = {.events = &messages.events,
                                             .command = fence->call.arguments.command,
                                             .environment = &environment,
                                             .renew = true, /* no lease ends */
                                             .on_lost = ON_LOST_STOP},
                                     .lock = fence->file.fd};
    fenced_run(&plan, &outcome);
    environment_free(&environment);
    fence->not_executed = outcome.not_executed;
    fence->call.signal = outcome.signal;
    return outcome.status;
}

/* Lets the token pass, or refuses it; runs COMMAND, if there is one, with the file still locked. */
static int execute_fence(struct call *call)
{
    struct fence *fence = (struct fence *)call;

    fence->file.fd = -1; /* not open yet */
    int status = pass_fence(fence);
    if (status == STATUS_OK && call->arguments.command)
        status = run_fenced(fence);
    token_file_close(&fence->file);
    if (fence->not_executed)
        not_executed_hint(status, call->arguments.command[0], "sh -c");
    return status;
}

const struct command command_fence = {
    .name = "fence",
    .summary = "on the resource's side: refuse a client with an older token",
    .usage = {"fence [OPTIONS] PATH [-- COMMAND [ARG...]]"},
    .example = "Example, on the host with the files: nothing older writes after something newer:\n"
               "  rlock run data -c 'tar -c . | ssh files rlock fence /srv/data.fence \\\n"
               "      --token \"$RLOCK_FENCE\" -- tar -x -C /srv/data'\n",
    .options = options,
    .size = sizeof(struct fence),
    .storeless = true,
    .check = check_fence,
    .act = execute_fence,
};
