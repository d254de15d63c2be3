/* Locks as JSON for programs: the names are a contract, documented in rlock-status(1). */
#ifndef RLOCK_RENDER_JSON_H
#define RLOCK_RENDER_JSON_H

#include "json.h"
#include "lock.h"

/* An array of objects in one line. The caller frees. */
char *render_json(const struct json_library *json, const struct lock_view *locks, size_t count);

#endif
