/* A server that may have forgotten locks: what the scripts are told so that it grants nothing new
 * for a while, and gives holders back what they had. Pure. */
#ifndef RLOCK_RULES_GRACE_H
#define RLOCK_RULES_GRACE_H

#include "store/store.h"

/* The key, in the store, of what tells for how long it remembers, PREFIX:!WHAT. The caller
 * frees. */
char *redis_grace_marker(const char *prefix, const char *what);

/* The last arguments of a renewal, given one by one to "add", which copies: with what it claims
 * where the server has forgotten it, if the request says what was granted. */
void redis_grace_renewal(const char *marker, const struct renew_request *request,
                         void (*add)(void *arg, const char *text), void *arg);

/* As acquire.lua and renew.lua write modes. */
const char *redis_grace_mode(enum lock_mode mode);

#endif
