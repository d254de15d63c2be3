/* What a subcommand is, and what all of them need: one const record each, walked by main.c. */
#ifndef RLOCK_COMMAND_H
#define RLOCK_COMMAND_H

#include "settings.h"
#include "status.h"

struct command {
    const char *name;
    const char *summary;               /* one line of `rlock help` */
    const char *usage[3];              /* lines after "rlock ", NULL-terminated */
    const char *example;               /* lines of the help */
    const struct option_spec *options; /* args.h */
    /* argv[0] is the command's name. Returns rlock's exit status. */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_run, command_read, command_write, command_acquire,
    command_renew, command_release, command_status, command_force_release, command_latch,
    command_init, command_doctor, command_local;

/* Says "rlock: NAME: MESSAGE". */
void command_error(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, and points to the help. Returns STATUS_USAGE. */
int command_misused(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Says why the store did not do it, with a hint where one helps. Returns the status for it. */
int command_refused(const struct command *command, const struct answer *answer);

/* args_parse() for a command. Help that is asked for is printed, faults are said: false, and *status is
 * what to end with. args_free() in either case. */
bool command_parse(const struct command *command, int argc, char **argv,
                   struct arguments *arguments, int *status);
/* settings_read() for a command; as above, settings_free() in either case. */
bool command_settings(const struct command *command, const struct arguments *arguments,
                      struct settings *settings, int *status);

/* The option as last given, or NULL. */
const struct given_option *command_option(const struct arguments *arguments, int id);

/* Prints the help of one command to standard output. Returns an exit status. */
int command_help(const struct command *command);

/* Writes out what was printed to standard output: STATUS_OK, or says why not and returns
 * STATUS_SYSTEM. A reader that went away is not worth a message. */
int command_flush(void);

#endif
