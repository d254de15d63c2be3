/* rlock init: marks a new server as one that has forgotten nothing; makes the tables of a
 * database. */
#include "cmd/commands.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPTION_FORCE = OPTION_OTHER, OPTION_PRINT, OPTION_GRANT };

static const struct option_spec options[] = {
    {.id = OPTION_FORCE,
     .name = "force",
     .help = "mark it even if it may have forgotten locks, because none is held"},
    {.id = OPTION_GRANT,
     .name = "grant",
     .argument = "USER",
     .help = "give USER of the database the rights that rlock needs"},
    {.id = OPTION_PRINT,
     .name = "print",
     .help = "print the SQL (or for --grant on Redis the ACL), and do nothing"},
    SETTINGS_OPTIONS,
    {0}};

struct init {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    const char *user; /* of --grant, or NULL */
};

static int mark(struct init *all)
{
    struct mark_request request = {.force = command_option(&all->arguments, OPTION_FORCE),
                                   .user = all->user};
    struct answer answer;

    query_ask(&all->query, (struct operation){.verb = VERB_MARK, .mark = &request}, &answer);
    if (answer.cause == CAUSE_GRACE) {
        command_error(all->command, "%s", answer.text);
        say_hint("--force ends that, if no command can be holding a lock");
        return STATUS_NO;
    }
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(all->command, &answer);
    say_detail("marked");
    command_confirm(all->command, "%s is ready for locks",
                    store_record_of(&all->settings.address)->name);
    return STATUS_OK;
}

/* Prints commands for an administrator, and connects to nothing. */
static int print(struct init *all)
{
    const struct store_address *address = &all->settings.address;
    const struct store_record *record = store_record_of(address);
    char *text = record->schema ? record->schema(address, all->user, 0) : NULL;

    if (!text) {
        command_error(all->command, "--print: %s has no tables%s", record->name,
                      record->schema ? "" : ", and no rights to print");
        if (record->schema)
            say_hint("--grant USER --print shows the rights that USER needs");
        return STATUS_USAGE;
    }
    for (size_t i = 1; text; i++) {
        printf("%s%s\n", text, record->grants ? ";" : "");
        free(text);
        text = record->schema(address, all->user, i);
    }
    return STATUS_OK;
}

static int begin(struct init *all)
{
    const struct store_address *address = &all->settings.address;
    const struct store_record *record = store_record_of(address);

    const struct given_option *grant = command_option(&all->arguments, OPTION_GRANT);

    all->user = grant ? grant->value : NULL;
    if (all->user && !*all->user) {
        command_error(all->command, "--grant: the name of a user is empty");
        return STATUS_USAGE;
    }
    if (command_option(&all->arguments, OPTION_PRINT))
        return print(all);
    if (!store_can(address, STORE_MARK))
        return command_lacks(all->command, address, STORE_MARK);
    if (all->user && !record->grants) {
        command_error(all->command, "--grant: rlock changes no users of %s", record->name);
        say_hint("--grant USER --print shows the command for an administrator");
        return STATUS_USAGE;
    }
    int status = command_open(all->command, &all->settings, &all->query);
    return status == STATUS_OK ? mark(all) : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct init all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        command_settings(command, &all.arguments, &all.settings, &status))
        status = begin(&all);
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_init = {
    .name = "init",
    .summary = "prepare a server for --grace, or make the tables of a database",
    .usage = {"init [OPTIONS]"},
    .example = "Examples, for a server and a database that were just set up:\n"
               "  rlock init -u redis://locks.example.com\n"
               "  rlock init -u postgresql://admin@db.example.com/locks --grant rlock\n",
    .options = options,
    .words = WORDS_NONE,
    .run = run,
};
