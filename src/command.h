/* What a subcommand is, and what all of them need: one const record each, walked by main.c. */
#ifndef RLOCK_COMMAND_H
#define RLOCK_COMMAND_H

#include "args.h"
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

extern const struct command command_run, command_status, command_force_release;

/* Says "rlock: NAME: MESSAGE" and points to the help. Returns STATUS_USAGE. */
int command_misused(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the help of one command to standard output. Returns an exit status. */
int command_help(const struct command *command);

/* Writes out what was printed to standard output: STATUS_OK, or says why not and returns
 * STATUS_SYSTEM. A reader that went away is no error worth a message. */
int command_flush(void);

#endif
