/* Subcommands that are programs of their own, so that rlock is linked with none of their libraries.
 * rlock parses their command line, as for any other subcommand, and becomes that program, which
 * parses it once more. */
#ifndef RLOCK_CLI_COMPANION_H
#define RLOCK_CLI_COMPANION_H

#include "cli/command.h"

/* Of serve, whose program reads it as well. */
enum { OPTION_LISTEN = OPTION_OTHER, OPTION_ALLOW_HOST, OPTION_AUTH_FILE };
/* The last ones as they are typed, for messages. */
#define ALLOW_HOST "--allow-host"
#define AUTH_FILE  "--auth-file"

/* Executes "rlock-NAME" of a command NAME in place of this process, with the same arguments and
 * environment. Returns only if it cannot: that was said, and the result is what to end with. */
int companion_execute(const struct command *command, char **argv);

#endif
