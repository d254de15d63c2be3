/* rlock force-release: take a lock away from its holder. */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "key.h"
#include "mem.h"
#include "query.h"
#include "render.h"
#include "utf8.h"

enum { OPTION_OWNER = OPTION_OTHER, OPTION_PURGE, OPTION_YES };

static const struct option_spec options[] = {
    {.id = OPTION_OWNER,
     .name = "owner",
     .argument = "TOKEN",
     .help = "only from the holder with this token, the owner in rlock status"},
    {.id = OPTION_PURGE,
     .name = "purge",
     .help = "empty the queue, too; waiters that live queue again"},
    {.id = OPTION_YES, .name = "yes", .help = "do not ask"},
    SETTINGS_OPTIONS,
    {0}};

struct eviction {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    const char *owner; /* the only one, NULL: all */
    bool purge, yes;
};

/* Shown also with --quiet if there is to be a question about it. */
static void show(const struct eviction *all, const char *key, const struct lock_party *holder)
{
    char who[RENDER_PARTY_SIZE], label[UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX)], since[32], left[32];
    char slot[24] = "";

    if (all->yes && say_verbosity() == SAY_QUIET)
        return;
    render_party(&holder->who, who, sizeof who);
    utf8_escape(holder->who.label, label, sizeof label);
    duration_print(holder->left_ms * NS_PER_MS, left, sizeof left);
    if (holder->slot)
        snprintf(slot, sizeof slot, " in slot %u", holder->slot);
    fprintf(stderr, "%s is held%s by %s%s since %s, lease left %s%s%s\n", key,
            holder->mode == LOCK_SHARED ? " for reading" : "", who, slot,
            render_time(holder->since_ms, since), left, label[0] ? ", label " : "", label);
}

static bool confirmed(const struct eviction *all, const char *question)
{
    char line[16];

    if (all->yes)
        return true;
    fprintf(stderr, "%s [y/N] ", question);
    if (!fgets(line, sizeof line, stdin)) {
        fputc('\n', stderr);
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

/* The holders that it is about, shown; how many. */
static size_t choose_owners(const struct eviction *all, const struct lock_view *lock,
                            const char **owners)
{
    size_t count = 0;

    for (size_t i = 0; i < lock->holder_count; i++) {
        if (all->owner && strcmp(lock->holders[i].owner, all->owner) != 0)
            continue;
        show(all, lock->key, &lock->holders[i]);
        owners[count++] = lock->holders[i].owner;
    }
    return count;
}

/* A plain no: the status tells it to who asked for quiet. */
static int refuse(const struct eviction *all, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(const struct eviction *all, const char *fmt, ...)
{
    char message[KEY_MAX_BYTES + 128];
    va_list list;

    va_start(list, fmt);
    vsnprintf(message, sizeof message, fmt, list);
    va_end(list);
    say_warning("%s: %s", all->command->name, message);
    return STATUS_NO;
}

static int force(struct eviction *all, const struct force_request *request)
{
    struct answer answer;

    query_pause(&all->query, 0); /* notices a connection that was closed during the question */
    query_force(&all->query, request, &answer);
    if (answer.cause == CAUSE_CHANGED || answer.cause == CAUSE_NOT_HOLDER)
        return refuse(all, "%s changed hands meanwhile; nothing was changed", request->key);
    if (answer.verdict != VERDICT_GRANTED) {
        int status = command_refused(all->command, &answer);
        if (answer.maybe_done)
            say_warning("%s may have been released all the same", request->key);
        return status;
    }
    if (request->owner_count)
        say_warning("%s was released", request->key);
    else
        say_warning("the queue of %s was emptied", request->key);
    return STATUS_OK;
}

static int evict_from(struct eviction *all, const struct lock_view *lock)
{
    const char **owners = mem_zeroed((lock->holder_count + 1) * sizeof *owners);
    struct force_request request = {lock->key, owners, 0, all->purge};
    bool idle_queue = lock->holder_count == 0 && lock->waiter_count > 0 && all->purge;
    char question[64] = "Take it away?";
    int status;

    request.owner_count = choose_owners(all, lock, owners);
    if (request.owner_count > 1)
        snprintf(question, sizeof question, "Take it away from all %zu?", request.owner_count);
    if (all->owner && request.owner_count == 0) {
        status = refuse(all, "%s is not held by %.80s", lock->key, all->owner);
    } else if (request.owner_count == 0 && !idle_queue) {
        status = refuse(all, "%s is not held", lock->key);
    } else if (!confirmed(all, idle_queue ? "Empty its queue?" : question)) {
        status = refuse(all, "%s is left as it was", lock->key);
    } else {
        status = force(all, &request);
    }
    free(owners);
    return status;
}

/* A pattern for store_survey() that is "key" and nothing else. The caller frees. */
static char *literal_pattern(const char *key)
{
    char *pattern = mem_zeroed(2 * strlen(key) + 1), *to = pattern;

    for (; *key; key++) {
        if (strchr("*?[\\", *key))
            *to++ = '\\';
        *to++ = *key;
    }
    return pattern;
}

static int evict(struct eviction *all, const char *key)
{
    struct lock_view free_lock = {.key = key};
    struct lock_list list;
    struct answer answer;
    char *pattern = literal_pattern(key);
    const char *patterns[] = {pattern};
    int status;

    query_survey(&all->query, patterns, 1, &list, &answer);
    if (answer.verdict == VERDICT_GRANTED)
        status = evict_from(all, list.count ? &list.locks[0] : &free_lock);
    else
        status = command_refused(all->command, &answer);
    lock_list_free(&list);
    free(pattern);
    return status;
}

static int check(struct eviction *all)
{
    const struct arguments *given = &all->arguments;
    const struct given_option *owner = command_option(given, OPTION_OWNER);

    all->owner = owner ? owner->value : NULL;
    all->purge = command_option(given, OPTION_PURGE) != NULL;
    all->yes = command_option(given, OPTION_YES) != NULL;
    if (given->command)
        return command_misused(all->command, "takes no COMMAND");
    if (given->word_count == 0)
        return command_misused(all->command, "no KEY");
    for (size_t i = 0; i < given->word_count; i++) {
        const char *fault = key_fault(given->words[i]);
        if (fault)
            return command_misused(all->command, "KEY '%.80s' %s", given->words[i], fault);
    }
    if (all->owner && given->word_count > 1)
        return command_misused(all->command, "--owner is for one KEY");
    if (!all->yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
        return command_misused(all->command, "needs --yes where it cannot ask");
    return STATUS_OK;
}

/* The worst status of all keys: an error of the store weighs more than a plain no. */
static int evict_all(struct eviction *all)
{
    char fault[256];
    int worst = STATUS_OK;

    if (!query_open(&all->query, &all->settings.address, fault, sizeof fault)) {
        command_error(all->command, "%s", fault);
        return all->settings.address_status;
    }
    for (size_t i = 0; i < all->arguments.word_count; i++) {
        int status = evict(all, all->arguments.words[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct eviction all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        (status = check(&all)) == STATUS_OK &&
        command_settings(command, &all.arguments, &all.settings, &status))
        status = evict_all(&all);
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_force_release = {
    .name = "force-release",
    .summary = "take a lock away from its holder",
    .usage = {"force-release [OPTIONS] KEY..."},
    .example = "Example, in a script, from the very holder that was seen:\n"
               "  rlock force-release --yes --owner \"$owner\" deploy\n",
    .options = options,
    .run = run,
};
