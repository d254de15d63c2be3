/* rlock init: a server that is new has forgotten nothing, and says so. */
#include "command.h"

#include <string.h>

#include "query.h"

enum { OPTION_FORCE = OPTION_OTHER };

static const struct option_spec options[] = {
    {.id = OPTION_FORCE,
     .name = "force",
     .help = "also where it may have forgotten locks: nobody holds any"},
    SETTINGS_OPTIONS,
    {0}};

struct beginning {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
};

/* Several servers, or parts of one, cannot be told as one what they know. */
static bool is_one_server(const struct store_address *address)
{
    return address->url_count == 1 && strcmp(address->urls->scheme, "cluster") != 0;
}

static int mark(struct beginning *all)
{
    bool force = command_option(&all->arguments, OPTION_FORCE);
    struct answer answer;

    query_mark(&all->query, force, &answer);
    if (answer.cause == CAUSE_GRACE) {
        command_error(all->command, "%s", answer.text);
        say_hint("--force ends that, if nobody can be holding a lock");
        return STATUS_NO;
    }
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(all->command, &answer);
    say_detail("marked");
    return STATUS_OK;
}

static int begin(struct beginning *all)
{
    const struct store_address *address = &all->settings.address;
    char fault[256];

    if (!is_one_server(address)) {
        command_error(all->command, "--grace is for one server, and so is this");
        return all->settings.address_status;
    }
    if (query_open(&all->query, address, fault, sizeof fault))
        return mark(all);
    command_error(all->command, "%s", fault);
    return all->settings.address_status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct beginning all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status)) {
        if (all.arguments.command)
            status = command_misused(command, "takes no COMMAND");
        else if (all.arguments.word_count > 0)
            status = command_misused(command, "takes no KEY");
        else if (command_settings(command, &all.arguments, &all.settings, &status))
            status = begin(&all);
    }
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_init = {
    .name = "init",
    .summary = "mark a new server, so that locks are granted at once with --grace",
    .usage = {"init [OPTIONS]"},
    .example = "Example, when a server was set up:\n"
               "  rlock init -u redis://locks.example.com\n",
    .options = options,
    .run = run,
};
