/* A server that may have forgotten locks: what the scripts are told so that it grants nothing new for a while, and
 * gives holders back what they had. Pure. */
#ifndef RLOCK_REDIS_GRACE_H
#define RLOCK_REDIS_GRACE_H

#include "store.h"

/* The key, in the store, of what tells whether it is still the server that knew. The caller frees. */
char *redis_grace_marker(const char *prefix);

/* What a renewal claims where the server has forgotten it, as arguments given one by one to "add", which copies; nothing
 * where the request does not say what was granted. The first is until when, by the server's clock, and to be filled in. */
void redis_grace_claim(const struct lock_request *request, void (*add)(void *arg, const char *text),
                       void *arg);

/* As acquire.lua and renew.lua write modes. */
const char *redis_grace_mode(enum lock_mode mode);

#endif
