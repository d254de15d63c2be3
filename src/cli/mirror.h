/* --mirror KIND:NAME: the lock of another program, which is held together with one of rlock's, or
 * taken away from that program. */
#ifndef RLOCK_CLI_MIRROR_H
#define RLOCK_CLI_MIRROR_H

#include <stddef.h>

#include "lock/key.h"

struct call;

#define MIRROR_SIZE (16 + KEY_MAX_BYTES + 1)

/* Reads the value of the option, "KIND:NAME" or "KIND", into "KIND:NAME"; NAME defaults to the key.
 * Returns NULL, or what is wrong with the value, a constant. */
const char *mirror_read(const char *value, const char *key, char out[MIRROR_SIZE]);

/* Checks that the store has the mirror together with that key. Returns STATUS_OK, or the status
 * after a message. */
int mirror_judge(const char *mirror, const char *key, const struct call *call);

#endif
