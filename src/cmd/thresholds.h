/* Locks held against limits: what `rlock check` says of them in one line, for monitors that run
 * Nagios's plugins and for people. Pure. */
#ifndef RLOCK_CMD_THRESHOLDS_H
#define RLOCK_CMD_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/lock.h"

/* The exit statuses of such a plugin. */
enum severity { SEVERITY_OK, SEVERITY_WARNING, SEVERITY_CRITICAL, SEVERITY_UNKNOWN };

/* What more than that is worth: in ms, or a number. */
struct threshold {
    bool given;
    int64_t warning, critical; /* warning is no more than critical; the same: no warning */
};

struct thresholds {
    struct threshold held;    /* ms: since the oldest holder acquired a lock */
    struct threshold waiting; /* ms: since the oldest waiter came */
    struct threshold waiters; /* how many wait for a lock */
    /* ms: since somebody succeeded; beyond any limit where nobody has. Views of a store with
     * memory, with the last run. */
    struct threshold not_done;
    struct threshold paused; /* ms: since a KEY or a GLOB was paused */
};

/* What a survey of the store has found; borrowed. */
struct thresholds_subject {
    const struct lock_view *locks;
    size_t count;
    const struct lock_view *pauses; /* of GLOBs, which are their keys */
    size_t pause_count;
    const char *const *patterns; /* that were asked for */
    size_t pattern_count;
};

/* Reads "CRIT" or "WARN:CRIT", durations or numbers. NULL, or what is wrong with it, as "is not …"
 * (a constant). */
const char *threshold_parse_duration(const char *text, struct threshold *threshold);
const char *threshold_parse_number(const char *text, struct threshold *threshold);

/* Room for a line: more than monitors show of one. */
#define THRESHOLDS_LINE_SIZE 2048

/* Judges all locks, and the pauses of GLOBs. The line has the worst first, and behind a bar the
 * numbers that such plugins print for graphs. A pattern that matches nothing is told. */
enum severity thresholds_judge(const struct thresholds *thresholds,
                               const struct thresholds_subject *subject,
                               char line[THRESHOLDS_LINE_SIZE]);

/* The same where there is nothing to judge, for a reason. */
enum severity thresholds_unknown(const char *why, char line[THRESHOLDS_LINE_SIZE]);

#endif
