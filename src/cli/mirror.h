/* --mirror KIND:NAME: another program's lock, which is held together with one of rlock's or is
 * taken away from that program. */
#ifndef RLOCK_CLI_MIRROR_H
#define RLOCK_CLI_MIRROR_H

#include <stddef.h>

#include "lock/key.h"

struct command;
struct settings;

#define MIRROR_SIZE (16 + KEY_MAX_BYTES + 1)

/* Reads the option's value for the lock "key", whose name counts where there is no NAME, into
 * "KIND:NAME". NULL, or what is wrong with it, a constant. */
const char *mirror_read(const char *value, const char *key, char out[MIRROR_SIZE]);

/* Whether the store has it, together with that key: STATUS_OK, or the status after a message. */
int mirror_judge(const char *mirror, const char *key, const struct command *command,
                 const struct settings *settings);

#endif
