/* What renew and release have in common. */
#include "tenure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"
#include "owner.h"
#include "render.h"

/* How much of a token is shown: it may be long. */
#define TOKEN_SHOWN 80

static bool take_key(struct tenure *tenure, int *status)
{
    const struct arguments *given = &tenure->arguments;
    const struct command *command = tenure->command;
    const char *why;

    tenure->key = given->words[0];
    if (given->command)
        *status = command_misused(command, "takes no COMMAND");
    else if (given->word_count == 0)
        *status = command_misused(command, "no KEY");
    else if (given->word_count > 1)
        *status = command_misused(command, "takes one KEY");
    else if ((why = key_fault(tenure->key)))
        *status = command_misused(command, "KEY '%.80s' %s", tenure->key, why);
    else
        return true;
    return false;
}

static bool take_owner(struct tenure *tenure, int *status)
{
    const struct given_option *option = command_option(&tenure->arguments, OPTION_TOKEN);
    const char *owner = option ? option->value : getenv("RLOCK_OWNER"), *why;
    const char *cut = owner && strlen(owner) > TOKEN_SHOWN ? "..." : "";

    tenure->owner = owner;
    if (!option && (!owner || !*owner)) {
        command_error(tenure->command, "no owner token");
        say_hint("--owner TOKEN or RLOCK_OWNER; rlock acquire prints it");
        *status = STATUS_USAGE;
        return false;
    }
    why = owner_fault(owner);
    if (!why)
        return true;
    if (option) {
        *status =
            command_misused(tenure->command, "--owner '%.*s%s' %s", TOKEN_SHOWN, owner, cut, why);
    } else {
        command_error(tenure->command, "RLOCK_OWNER '%.*s%s' %s", TOKEN_SHOWN, owner, cut, why);
        *status = STATUS_CONFIG;
    }
    return false;
}

bool tenure_begin(struct tenure *tenure, const struct command *command, int argc, char **argv,
                  int *status)
{
    char fault[256];

    *tenure = (struct tenure){.command = command};
    if (!command_parse(command, argc, argv, &tenure->arguments, status) ||
        !take_key(tenure, status) || !take_owner(tenure, status) ||
        !command_settings(command, &tenure->arguments, &tenure->settings, status))
        return false;
    tenure->request = (struct lock_request){
        .keys = &tenure->key, .key_count = 1, .owner = tenure->owner, .who = ""};
    if (query_open(&tenure->query, &tenure->settings.address, fault, sizeof fault))
        return true;
    command_error(command, "%s", fault);
    *status = tenure->settings.address_status;
    return false;
}

/* A plain no: the status tells it to who asked for quiet. */
static void say_not_holder(const struct tenure *tenure, const struct answer *answer)
{
    const char *name = tenure->command->name;
    const struct lock_party *holder = &answer->holder;
    char who[RENDER_PARTY_SIZE];

    if (holder->owner[0])
        say_warning("%s: %.100s is not held by that owner, but by %s", name, tenure->key,
                    render_party(&holder->who, who, sizeof who));
    else if (answer->holders > 0)
        say_warning("%s: %.100s is not held by that owner, but by others", name, tenure->key);
    else
        say_warning("%s: %.100s is not held: it was released, or its lease has run out", name,
                    tenure->key);
    if (answer->holders > 0 && !command_option(&tenure->arguments, OPTION_TOKEN))
        say_hint("RLOCK_OWNER names another holder; --owner TOKEN");
}

int tenure_refused(const struct tenure *tenure, const struct answer *answer)
{
    if (answer->cause != CAUSE_NOT_HOLDER)
        return command_refused(tenure->command, answer);
    say_not_holder(tenure, answer);
    return STATUS_NO;
}

void tenure_end(struct tenure *tenure)
{
    query_close(&tenure->query);
    settings_free(&tenure->settings);
    args_free(&tenure->arguments);
}
