/* Locks as text for people. Everything that others wrote comes out escaped (utf8.h). Pure but for the
 * stream it is given. */
#ifndef RLOCK_RENDER_H
#define RLOCK_RENDER_H

#include "lock.h"
#include <stdio.h>

struct render_style {
    bool color;
    int width; /* of a line; 0: any */
};

/* "user@host pid 4121 (make)", as much of it as is known; "someone" where nothing is. */
char *render_party(const struct identity *who, char *out, size_t size);
/* Room for the longest. */
#define RENDER_PARTY_SIZE (3 * (4 * IDENTITY_WORD_MAX + 1) + 64)

/* ISO 8601 in UTC with milliseconds, as "2026-11-20T08:15:30.123Z". Returns out. */
char *render_time(int64_t ms, char out[32]);

/* A row a lock. */
void render_table(FILE *out, const struct lock_view *locks, size_t count,
                  const struct render_style *style);

/* Every holder, and the queue in its order. */
void render_long(FILE *out, const struct lock_view *locks, size_t count,
                 const struct render_style *style);

#endif
