/* Reads the settings: from option, environment, user's file, system's file, default, the first of
 * them that says something. Wrong values are told with the place that they came from. */
#ifndef RLOCK_CLI_SETTINGS_READ_H
#define RLOCK_CLI_SETTINGS_READ_H

#include "cli/settings.h"

/* Collects everything, sets the verbosity, and overwrites passwords among the arguments and in the
 * environment, which ps and /proc would show; getenv() and "environ" have the latter still. Returns
 * STATUS_OK; or STATUS_USAGE or STATUS_CONFIG, by where it came from, with a message in "fault"
 * that has no password in it. Settings borrow from arguments and environment. settings_free() in
 * either case; they must stay where they are. */
int settings_read(struct settings *settings, const struct arguments *arguments, char *fault,
                  size_t size);
/* The verbosity alone, for a command that asks no store. */
void settings_set_verbosity(const struct arguments *arguments);

#endif
