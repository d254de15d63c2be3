/* Reads the settings: from options, environment, user's file, system's files and defaults, of which
 * the first that says something counts. A wrong value is reported with its place. */
#ifndef RLOCK_CLI_SETTINGS_READ_H
#define RLOCK_CLI_SETTINGS_READ_H

#include "cli/settings.h"

/* Collects everything, sets the verbosity, and overwrites passwords among the arguments and in the
 * environment, which ps and /proc would show; getenv() and "environ" still have the latter. Returns
 * STATUS_OK; or STATUS_USAGE or STATUS_CONFIG, by where the wrong value came from, with a message
 * without passwords in "fault". Settings borrow from arguments and environment. Release them with
 * settings_free() in either case; they must not be moved. */
int settings_read(struct settings *settings, const struct arguments *arguments, char *fault,
                  size_t size);
/* Sets only the verbosity, for a command that needs no store. */
void settings_set_verbosity(const struct arguments *arguments);

/* Returns the status for a wrong value of a setting that was read: STATUS_USAGE for an option, else
 * STATUS_CONFIG. */
int settings_status(const struct settings *settings, enum setting id);
/* Prints where a setting comes from: "--wait", "RLOCK_URL", "/etc/rlock.conf:3" or "default".
 * Returns out. */
char *settings_print_origin(const struct settings *settings, enum setting id, char *out,
                            size_t size);
/* Prints what is wrong with a setting: "PLACE 'VALUE' WHY", or "PLACE WHY" for a secret. Returns
 * settings_status(). */
int settings_refuse(const struct settings *settings, enum setting id, const char *why, char *fault,
                    size_t size);

#endif
