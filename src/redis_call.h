/* One call of a script: its keys and arguments, and how it is put into a batch. */
#ifndef RLOCK_REDIS_CALL_H
#define RLOCK_REDIS_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis_link.h"
#include "scripts.h"

struct redis_call {
    const struct script *script; /* NULL: none */
    bool whole;  /* send the script itself: the server does not know it by its digest */
    char **keys; /* in the store */
    size_t key_count;
    char **argv;
    size_t argc;
    size_t node_at; /* the argument that tells a quorum's member which it is; 0: none does */
};

/* "prefix" is what the store's keys start with. */
void redis_call_begin(struct redis_call *call, const struct script *script, const char *prefix,
                      const char *const *keys, size_t count);
void redis_call_text(struct redis_call *call, const char *text);
void redis_call_number(struct redis_call *call, int64_t number);
/* Argument i is known better now. */
void redis_call_replace(struct redis_call *call, size_t i, const char *text);
/* Adds it to the link's batch. */
void redis_call_add(const struct redis_call *call, struct redis_link *link);
/* Frees what it has; it is none then. */
void redis_call_drop(struct redis_call *call);

#endif
