/* What all subcommands need. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE 1024
#define HELP_SIZE    8192

static void say_list(const struct command *command, const char *fmt, va_list list)
    __attribute__((format(printf, 2, 0)));

static void say_list(const struct command *command, const char *fmt, va_list list)
{
    char message[MESSAGE_SIZE];

    vsnprintf(message, sizeof message, fmt, list);
    say_error("%s: %s", command->name, message);
}

void command_error(const struct command *command, const char *fmt, ...)
{
    va_list list;

    va_start(list, fmt);
    say_list(command, fmt, list);
    va_end(list);
}

int command_misused(const struct command *command, const char *fmt, ...)
{
    va_list list;

    va_start(list, fmt);
    say_list(command, fmt, list);
    va_end(list);
    say_hint("rlock help %s", command->name);
    return STATUS_USAGE;
}

int command_refused(const struct command *command, const struct answer *answer)
{
    const char *hint = hint_of_cause(answer->cause);

    command_error(command, "%s", answer->text);
    if (hint)
        say_hint("%s", hint);
    return status_of_cause(answer->cause);
}

const struct given_option *command_option(const struct arguments *arguments, int id)
{
    for (size_t i = arguments->option_count; i > 0; i--)
        if (arguments->options[i - 1].id == id)
            return &arguments->options[i - 1];
    return NULL;
}

bool command_parse(const struct command *command, int argc, char **argv,
                   struct arguments *arguments, int *status)
{
    bool fine = args_parse(argc, argv, command->options, arguments);

    if (command_option(arguments, OPTION_HELP))
        *status = command_help(command);
    else if (!fine)
        *status = command_misused(command, "%s", arguments->fault);
    else
        return true;
    return false;
}

bool command_settings(const struct command *command, const struct arguments *arguments,
                      struct settings *settings, int *status)
{
    char fault[MESSAGE_SIZE];

    *status = settings_read(settings, arguments, fault, sizeof fault);
    if (*status == STATUS_USAGE)
        command_misused(command, "%s", fault);
    else if (*status != STATUS_OK)
        command_error(command, "%s", fault);
    return *status == STATUS_OK;
}

int command_help(const struct command *command)
{
    char options[HELP_SIZE];

    args_help(command->options, options, sizeof options);
    for (size_t i = 0; i < 3 && command->usage[i]; i++)
        printf("%s rlock %s\n", i ? "      " : "usage:", command->usage[i]);
    printf("\n%s\n\n%s\n%s", command->summary, options, command->example);
    return command_flush();
}

int command_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    if (errno != EPIPE)
        say_error("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    return STATUS_SYSTEM;
}
