/* rlock renew and rlock release: what a script does with a lock that it has acquired. */
#include "cmd/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/describe.h"
#include "cli/not_holder.h"
#include "cli/reservation.h"
#include "lock/owner.h"
#include "store/urls.h"

enum { OPTION_TOKEN = OPTION_OTHER };

static const struct option_spec renew_release_options[] = {
    {.id = OPTION_TOKEN,
     .name = "owner",
     .argument = "TOKEN",
     .help = "the owner token that rlock acquire printed (RLOCK_OWNER)"},
    SETTING_AS(REPLICAS, "as at acquisition: N replicas, a majority or all must have it"),
    SETTING_AS(GRACE, "as at acquisition: the store may have forgotten the lock"),
    SETTINGS_OPTIONS,
    {0}};

struct renew_release {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    const char *key, *owner;
    char reserved[OWNER_SIZE]; /* the owner, if the user has reserved the key */
    char holder[OWNER_SIZE];   /* an ancestor of the owner */
    const char *meant;         /* the owner, or its ancestor that holds the key */
};

static int misused_token(const struct renew_release *action, bool option, const char *why)
{
    char shown[URLS_SHOWN_SIZE];

    urls_show(action->owner, shown);
    if (option)
        return command_misused(action->command, "--owner '%s' %s", shown, why);
    command_error(action->command, "RLOCK_OWNER '%s' %s", shown, why);
    return STATUS_CONFIG;
}

/* The run's command would continue beside that of the next holder. */
static int refuse_to_end_run(const struct renew_release *action)
{
    say_warning("%s: %.100s: not a token printed by rlock acquire", action->command->name,
                action->key);
    say_hint("RLOCK_OWNER belongs to rlock run, which releases its own lock; --owner TOKEN");
    return STATUS_NO;
}

static bool take_owner(struct renew_release *action, int *status)
{
    const struct given_option *option = command_option(&action->arguments, OPTION_TOKEN);
    const char *owner = option ? option->value : getenv("RLOCK_OWNER"), *why;

    action->owner = owner;
    if (!option && (!owner || !*owner)) {
        action->owner = action->reserved;
        if (reservation_find(&action->settings, action->key, action->reserved))
            return true;
        *status = STATUS_NO;
        if (not_holder_say_reserved(action->command, action->key, &action->settings))
            return false;
        command_error(action->command, "no owner token");
        say_hint("--owner TOKEN or RLOCK_OWNER; rlock acquire prints it");
        *status = STATUS_USAGE;
        return false;
    }
    why = owner_fault(owner);
    if (why)
        *status = misused_token(action, option, why);
    else if (!option && action->command == &command_release && !owner_is_acquired(owner))
        *status = refuse_to_end_run(action);
    return *status == STATUS_OK;
}

/* Finds the owner that is meant. A shell that has acquired several locks has only the token of the
 * last one, which nests in the others: the nearest of these that holds KEY is meant, or, if none
 * does, the token itself. */
static bool find_holder(struct renew_release *action, int *status)
{
    struct lock_list list;
    struct answer answer;
    char *holder = action->holder;
    bool found;

    if (!owner_acquired_in(action->owner, holder))
        return true;
    query_read_lock(&action->query, action->key, &list, &answer);
    strcpy(holder, action->owner);
    do {
        found = list.locks.count > 0 && lock_is_held_by(list.locks.views, holder);
    } while (!found && owner_acquired_in(holder, holder));
    if (found)
        action->meant = holder;
    lock_list_free(&list);
    if (answer.verdict == VERDICT_GRANTED)
        return true;
    *status = command_refused(action->command, &answer);
    return false;
}

/* Reads the command line and the settings, and checks them before the store is asked. Returns false
 * with the exit status if there is nothing to ask. end() must follow in either case. */
static bool begin(struct renew_release *action, const struct command *command, int argc,
                  char **argv, int *status)
{
    *action = (struct renew_release){.command = command};
    if (!command_parse(command, argc, argv, &action->arguments, status))
        return false;
    action->key = action->arguments.words[0];
    if (!command_settings(command, &action->arguments, &action->settings, status) ||
        !take_owner(action, status))
        return false;
    action->meant = action->owner;
    *status = command_open(command, &action->settings, &action->query);
    return *status == STATUS_OK && find_holder(action, status);
}

static void say_not_holder(const struct renew_release *action, const struct answer *answer)
{
    static const struct not_holder_words words = {
        .what = "held by that owner",
        .by = "by",
        .gone = "held: it was released, or its lease has run out"};

    not_holder_say(action->command, action->key, answer, &words);
    if (answer->holders > 0 && !answer->revoked.known &&
        !command_option(&action->arguments, OPTION_TOKEN))
        say_hint("RLOCK_OWNER names another holder; --owner TOKEN");
}

/* Reports a REFUSED or UNKNOWN answer. Returns the exit status. */
static int refused(const struct renew_release *action, const struct answer *answer)
{
    if (answer->cause != CAUSE_NOT_HOLDER)
        return command_refused(action->command, answer);
    say_not_holder(action, answer);
    return STATUS_NO;
}

static void end(struct renew_release *action)
{
    query_close(&action->query);
    settings_free(&action->settings);
    args_free(&action->arguments);
}

/* -- renew ------------------------------------------------------------------------------------- */

static const struct option_spec renew_options[] = {
    {.id = SETTING_LEASE,
     .name = "lease",
     .argument = "DUR",
     .help =
         "from now on the lease is DUR long, at least 1s (default: as asked for when the lock was "
         "acquired)"},
    {.table = renew_release_options},
    {0}};

static int renew(struct renew_release *action)
{
    /* The lease in a file or a variable is for acquisitions. */
    bool given = command_option(&action->arguments, SETTING_LEASE);
    const struct renew_request request = {.keys = &action->key,
                                          .key_count = 1,
                                          .owner = action->meant,
                                          .who = "",
                                          .lease = given ? action->settings.lease : 0,
                                          .strict = true};
    struct answer answer;

    query_renew(&action->query, &request, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return refused(action, &answer);
    say_detail("%.100s: renewed", action->key);
    return STATUS_OK;
}

static int run_renew(const struct command *command, int argc, char **argv)
{
    struct renew_release action;
    int status;

    if (begin(&action, command, argc, argv, &status))
        status = renew(&action);
    end(&action);
    return status;
}

const struct command command_renew = {
    .name = "renew",
    .summary = "extend the lease of a lock that rlock acquire took",
    .usage = {"renew [OPTIONS] KEY"},
    .example = "Example, a script that renews between its steps, and ends if it lost the lock:\n"
               "  rlock renew --owner \"$token\" deploy || exit\n",
    .options = renew_options,
    .words = WORDS_KEY,
    .run = run_renew,
};

/* -- release ----------------------------------------------------------------------------------- */

static int release(struct renew_release *action)
{
    const struct release_request request = {
        .keys = &action->key,
        .key_count = 1,
        .owner = action->meant,
        .lease = action->settings.lease, /* for how long others wait, if it was forgotten */
        .strict = true};
    struct answer answer;

    query_release(&action->query, &request, &answer);
    /* The file of a reservation that was taken away stays, so that this is reported each time. */
    if (action->owner == action->reserved && answer.verdict != VERDICT_UNKNOWN &&
        !answer.revoked.known)
        reservation_forget(&action->settings, action->key);
    if (answer.verdict == VERDICT_GRANTED) {
        say_detail("%.100s: released", action->key);
        return STATUS_OK;
    }
    int status = refused(action, &answer);
    if (answer.maybe_done)
        say_warning("%.100s may have been released all the same", action->key);
    return status;
}

static int run_release(const struct command *command, int argc, char **argv)
{
    struct renew_release action;
    int status;

    if (begin(&action, command, argc, argv, &status))
        status = release(&action);
    end(&action);
    return status;
}

const struct command command_release = {
    .name = "release",
    .summary = "release a lock that rlock acquire took",
    .usage = {"release [OPTIONS] KEY"},
    .example = "Example:\n"
               "  token=$(rlock acquire --keep $$ deploy) || exit\n"
               "  ./deploy.sh production\n"
               "  rlock release --owner \"$token\" deploy\n",
    .options = renew_release_options,
    .words = WORDS_KEY,
    .run = run_release,
};
