/* What is asked for. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asker.h"
#include "key.h"
#include "mem.h"
#include "owner.h"

static bool fail(char *fault, size_t size, const char *what, const char *value, const char *why)
{
    snprintf(fault, size, "%s '%.80s' %s", what, value, why);
    return false;
}

static bool has_key(const struct request *request, const char *key)
{
    for (size_t i = 0; i < request->key_count; i++)
        if (strcmp(request->keys[i], key) == 0)
            return true;
    return false;
}

static bool take_keys(struct request *request, const struct arguments *arguments, char *fault,
                      size_t size)
{
    for (size_t i = 0; i < arguments->word_count; i++) {
        const char *key = arguments->words[i], *why = key_fault(key);
        if (why)
            return fail(fault, size, "KEY", key, why);
        if (has_key(request, key))
            continue;
        if (request->key_count == LOCK_KEYS_MAX) {
            snprintf(fault, size, "more than %d KEYs", LOCK_KEYS_MAX);
            return false;
        }
        request->keys[request->key_count++] = key;
    }
    if (request->key_count > 0)
        return true;
    snprintf(fault, size, "no KEY");
    return false;
}

/* "a, b, c"; where not all fit, "a, b and 30 more". */
static void make_title(struct request *request)
{
    const size_t tail = 32, room = sizeof request->title - tail;
    size_t used = strnlen(request->keys[0], room);

    memcpy(request->title, request->keys[0], used);
    for (size_t i = 1; i < request->key_count; i++) {
        char *end = request->title + used;
        if (used + 2 + strlen(request->keys[i]) > room) {
            snprintf(end, tail, " and %zu more", request->key_count - i);
            return;
        }
        used += (size_t)sprintf(end, ", %s", request->keys[i]);
    }
}

static bool take_limit(struct request *request, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);

    request->limit = (unsigned)number;
    return *value >= '0' && *value <= '9' && !*end && number >= 1 && number <= LOCK_LIMIT_MAX;
}

static bool take_mode(struct request *request, int id)
{
    enum lock_mode mode = id == OPTION_SHARED  ? LOCK_SHARED
                          : id == OPTION_LIMIT ? LOCK_LIMIT
                                               : LOCK_EXCLUSIVE;
    bool fits = !request->mode_given || request->mode == mode;

    request->mode = mode;
    request->mode_given = true;
    return fits;
}

bool request_read(struct request *request, const struct arguments *arguments, int preset,
                  char *fault, size_t size)
{
    *request = (struct request){0};
    if (preset)
        take_mode(request, preset);
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        bool of_mode = option->id == OPTION_EXCLUSIVE || option->id == OPTION_SHARED ||
                       option->id == OPTION_LIMIT;
        if (of_mode && !take_mode(request, option->id)) {
            snprintf(fault, size, "only one of --read, --write and --limit");
            return false;
        }
        if (option->id == OPTION_LIMIT && !take_limit(request, option->value)) {
            snprintf(fault, size, "--limit '%.40s' is not a number from 1 to %d", option->value,
                     LOCK_LIMIT_MAX);
            return false;
        }
        request->no_nesting |= option->id == OPTION_NO_REENTRANT;
    }
    if (!take_keys(request, arguments, fault, size))
        return false;
    make_title(request);
    return true;
}

/* A variable that is set to nothing is not set. */
static const char *outer_owner(void)
{
    const char *value = getenv("RLOCK_OWNER");
    return value && *value ? value : NULL;
}

static int take_owner(struct request *request, const struct command *command)
{
    const char *outer = outer_owner(), *why = outer ? owner_fault(outer) : NULL;
    char uuid[OWNER_UUID_SIZE];

    if (!asker_uuid(uuid)) {
        command_error(command, "cannot get random bits: %s", strerror(errno));
        return STATUS_SYSTEM;
    }
    if (!why && owner_nest(outer, uuid, request->owner))
        return STATUS_OK;
    if (!why && request->in_turn) {
        owner_beside(outer, uuid, request->owner);
        return STATUS_OK;
    }
    why = why ? why : "is nested too deep";
    command_error(command, "RLOCK_OWNER '%.80s%s' %s", outer, strlen(outer) > 80 ? "..." : "", why);
    say_hint("it is for rlock alone to set; unset it to begin anew");
    return STATUS_CONFIG;
}

int request_sign(struct request *request, const struct command *command,
                 const struct settings *settings, const char *program, pid_t pid)
{
    struct identity who = {0};
    int status = take_owner(request, command);

    if (status != STATUS_OK)
        return status;
    if (!settings->no_identity)
        asker_identity(&who, program, pid);
    if (settings->label)
        identity_set(who.label, settings->label);
    else
        asker_label(&who);
    request->who = mem_checked(identity_print(&who));
    return STATUS_OK;
}

void request_plan(const struct request *request, const struct settings *settings,
                  struct keeper_plan *plan)
{
    bool wait = settings->wait != 0;

    *plan = (struct keeper_plan){.request = {.keys = request->keys,
                                             .key_count = request->key_count,
                                             .owner = request->owner,
                                             .mode = request->mode,
                                             .limit = request->limit,
                                             .no_nesting = request->no_nesting,
                                             .lease = settings->lease,
                                             .who = request->who},
                                 .wait = wait,
                                 .wait_until = MOMENT_NEVER,
                                 .renew = true,
                                 .connect_timeout = settings->address.connect_timeout};
    if (settings->wait > 0)
        plan->wait_until = moment_plus(moment_now(), settings->wait);
}

void request_free(struct request *request)
{
    free(request->who);
    request->who = NULL;
}
