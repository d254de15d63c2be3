/* rlock local: the server of --local. */
#include "cmd/commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/local/local.h"
#include "store/url.h"

#define HOLD_NS (10 * NS_PER_SEC) /* for another one to start or stop it */
#define END_NS  (10 * NS_PER_SEC) /* for the server to write its data and end */

enum { OPTION_FORCE = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_FORCE, "force", NULL,
           "stop: even while locks are held or waited for, by KILL if necessary"),
    SETTINGS_OPTIONS,
    {0}};

static const struct command_action actions[] = {
    {.name = "status", .wants = "is the server running?"},
    {.name = "stop", .wants = "unless locks are held", .options = {OPTION_FORCE}},
    {0}};

struct local {
    struct call call;
    struct local_place place;
};

/* The locks of the server, under all prefixes. */
struct usage {
    size_t held, waiting;
};

/* Counts the locks of the server, which is asked by its socket, as "local:" would start one. False:
 * *answer says why not. */
static bool count_locks(const struct local *local, struct usage *usage, struct answer *answer)
{
    const struct url url = local_url(&local->place);
    struct store_address address = {.urls = &url,
                                    .url_count = 1,
                                    .connect_timeout =
                                        local->call.settings.address.connect_timeout};
    struct lock_list list ENDED_BY(lock_list_free) = {0};

    *usage = (struct usage){0};
    query_look(&address, &(struct survey_request){0}, &list, answer);
    lock_list_refuse(&list, answer);
    for (size_t i = 0; i < list.locks.count; i++) {
        usage->held += list.locks.views[i].holder_count > 0;
        usage->waiting += list.locks.views[i].waiter_count;
    }
    return answer->verdict == VERDICT_GRANTED;
}

/* -- stop ------------------------------------------------------------------------------------ */

/* Stops the server, unless locks are held. The caller keeps others from starting the server
 * meanwhile. An acquisition between the question and the end starts it again, with that lock in its
 * data. */
static int stop_server(const struct local *local)
{
    bool force = command_has(&local->call, OPTION_FORCE);
    struct usage usage;
    struct answer answer;

    if (local_server(&local->place) == 0) {
        say_detail("no local server runs");
        return STATUS_OK;
    }
    if (!force && !count_locks(local, &usage, &answer)) {
        command_error(&local->call, "%s", answer.text);
        say_hint("--force stops it without asking it for its locks");
        return STATUS_UNAVAILABLE;
    }
    if (!force && usage.held + usage.waiting > 0) {
        command_error(&local->call, "%zu lock%s held and %zu waited for", usage.held,
                      usage.held == 1 ? " is" : "s are", usage.waiting);
        say_hint("rlock status --local shows those of your prefix; --force stops it even so");
        return STATUS_NOT_ACQUIRED;
    }
    pid_t pid = local_server(&local->place);
    char words[LOCAL_WORDS_SIZE];
    local_server_words(pid, words, sizeof words);
    if (pid > 0 && (force ? local_force_end : local_end)(&local->place, END_NS)) {
        unlink(local->place.socket); /* one that was killed leaves it behind */
        say_detail("the local server, process %s, has ended", words);
        return STATUS_OK;
    }
    command_error(&local->call, "the server, process %s, does not end", words);
    if (pid < 0)
        say_hint("this command cannot signal it; rlock local stop in its name space does");
    else if (!force)
        say_hint("--force kills it; no lock that it has granted is lost");
    return STATUS_UNAVAILABLE;
}

/* Stops the server, while no other process can start it. */
static int stop_local(struct local *local)
{
    int held = local_hold(&local->place, HOLD_NS); /* the descriptor of a locked file */

    if (held < 0) {
        command_error(&local->call, "%s/lock: %s", local->place.directory,
                      errno == ETIME ? "another process starts or stops it" : strerror(errno));
        return STATUS_UNAVAILABLE;
    }
    int status = stop_server(local);
    close(held);
    return status;
}

/* -- status ---------------------------------------------------------------------------------- */

static int show_server(struct local *local)
{
    pid_t pid = local_server(&local->place);
    struct usage usage;
    struct answer answer;
    bool quiet = say_verbosity() == SAY_QUIET;

    if (pid == 0) {
        say_warning("no local server runs");
        return STATUS_NO;
    }
    if (quiet)
        return STATUS_OK;
    if (!count_locks(local, &usage, &answer))
        return command_refused(&local->call, &answer);
    char words[LOCAL_WORDS_SIZE];
    printf("process  %s\nsocket   %s\nlocks    %zu held, %zu waiting\n",
           local_server_words(pid, words, sizeof words), local->place.socket, usage.held,
           usage.waiting);
    return command_flush();
}

/* Stops or shows the local server. */
static int execute_local(struct call *call)
{
    struct local *local = (struct local *)call;
    bool stops = strcmp(call->arguments.words[0], "stop") == 0;
    char fault[256];

    if (local_find(&local->place, fault, sizeof fault))
        return stops ? stop_local(local) : show_server(local);
    if (*fault) {
        command_error(call, "%s", fault);
        return STATUS_UNAVAILABLE;
    }
    if (stops) /* there never was a server */
        return STATUS_OK;
    say_warning("no local server runs");
    return STATUS_NO;
}

static int check_local(struct call *call)
{
    const struct arguments *given = &call->arguments;
    const char *action = given->words[0];

    if (given->command)
        return command_misused(call, "takes no COMMAND");
    if (given->word_count == 0)
        return command_misused(call, "stop or status?");
    if (!command_find_action(call->command, given))
        return command_misused(call, "unknown action '%s'", URLS_TEXT(action));
    if (given->word_count > 1)
        return command_misused(call, "%s takes no KEY", action);
    if (command_has(call, OPTION_FORCE) && strcmp(action, "stop") != 0)
        return command_misused(call, "--force is for stop");
    return STATUS_OK;
}

const struct command command_local = {
    .name = "local",
    .summary = "show or stop the private server of --local",
    .usage = {"local status|stop [OPTIONS]"},
    .example = "Example:\n  rlock run --local build -- make\n  rlock local stop\n",
    .options = options,
    .actions = actions,
    .size = sizeof(struct local),
    .check = check_local,
    .act = execute_local,
};
