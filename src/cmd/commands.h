/* The records of all subcommands (cli/command.h). */
#pragma once

#include "cli/command.h"

extern const struct command command_run, command_read, command_write, command_acquire,
    command_renew, command_release, command_status, command_force_release, command_latch,
    command_limit, command_reserve, command_extend, command_pause, command_resume, command_init,
    command_doctor, command_local, command_history, command_events, command_check, command_metrics,
    command_top, command_serve, command_fence, command_config;

/* The option by which command_force_release does not ask the holder. */
#define FORCE_RELEASE_NOW "--now"

/* The options of command_serve, which its program (src/serve) reads as well. */
enum { OPTION_LISTEN = OPTION_OTHER, OPTION_ALLOW_HOST, OPTION_AUTH_FILE };
#define ALLOW_HOST "--allow-host"
#define AUTH_FILE  "--auth-file"

/* Prints what fits in place of the last of the words, of which the first is the command's name.
 * Returns an exit status. */
int complete(const struct command *command, int count, char **words);
