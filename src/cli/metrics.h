/* Locks as Prometheus text (format 0.0.4). Names, types and labels are a contract, which
 * rlock-metrics(1) documents. Pure. */
#ifndef RLOCK_CLI_METRICS_H
#define RLOCK_CLI_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "lock/lock.h"

/* The type of the text in HTTP. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The result of a survey of the store, each key once; borrowed. */
struct metrics_source {
    bool up; /* the store has answered; otherwise rlock_up is the only sample */
    const struct lock_view *locks;
    size_t count;
    const struct lock_view *pauses; /* of GLOBs, which are their keys */
    size_t pause_count;
    bool memory; /* the store counts the ends of runs, and lists free locks, too */
};

/* The whole text, which ends in "# EOF" and a newline, and its length in bytes. The caller
 * frees. */
char *metrics_render(const struct metrics_source *source, size_t *length);

#endif
