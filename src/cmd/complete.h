/* Completions of command lines. */
#ifndef RLOCK_CMD_COMPLETE_H
#define RLOCK_CMD_COMPLETE_H

#include "cli/command.h"

/* Prints what fits in place of the last of the words, of which the first is the command's name.
 * Returns an exit status. */
int complete(const struct command *command, int count, char **words);

#endif
