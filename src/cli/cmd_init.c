/* rlock init: a server that is new has forgotten nothing, and says so; a database gets tables. */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPTION_FORCE = OPTION_OTHER, OPTION_PRINT };

static const struct option_spec options[] = {
    {.id = OPTION_FORCE,
     .name = "force",
     .help = "mark it even if it may have forgotten locks, because nobody holds any"},
    {.id = OPTION_PRINT,
     .name = "print",
     .help = "print the SQL that makes a database's tables, and do nothing"},
    SETTINGS_OPTIONS,
    {0}};

struct init {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
};

static int mark(struct init *all)
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

/* For an administrator: nothing is connected to. */
static int print(struct init *all)
{
    const struct store_record *record = store_record_of(&all->settings.address);
    char *statement;

    if (!record->schema) {
        command_error(all->command, "--print: %s has no tables", record->name);
        return STATUS_USAGE;
    }
    for (size_t i = 0; (statement = record->schema(all->settings.address.urls, i)); i++) {
        printf("%s;\n", statement);
        free(statement);
    }
    return STATUS_OK;
}

static int begin(struct init *all)
{
    const struct store_address *address = &all->settings.address;

    if (!store_can(address, STORE_MARK))
        return command_lacks(all->command, address, STORE_MARK);
    if (command_option(&all->arguments, OPTION_PRINT))
        return print(all);
    int status = command_open(all->command, &all->settings, &all->query);
    return status == STATUS_OK ? mark(all) : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct init all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        command_takes_options_alone(command, &all.arguments, &status) &&
        command_settings(command, &all.arguments, &all.settings, &status))
        status = begin(&all);
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_init = {
    .name = "init",
    .summary = "prepare a new server: mark it for --grace, or make a database's tables",
    .usage = {"init [OPTIONS]"},
    .example = "Examples, for a server and a database that were just set up:\n"
               "  rlock init -u redis://locks.example.com\n"
               "  rlock init -u postgresql://rlock@db.example.com/locks\n",
    .options = options,
    .run = run,
};
