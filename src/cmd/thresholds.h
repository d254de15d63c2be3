/* Locks measured against limits: what `rlock check` says of them in one line, for monitors that run
 * Nagios's plugins and for people. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "store/views.h"

/* The exit statuses of such a plugin. */
enum severity { SEVERITY_OK, SEVERITY_WARNING, SEVERITY_CRITICAL, SEVERITY_UNKNOWN };

/* The measures; times are in ms. */
enum measure {
    MEASURE_HELD,     /* since the oldest holder acquired a lock */
    MEASURE_WAITING,  /* since the oldest waiter came */
    MEASURE_WAITERS,  /* the waiters of a lock, a number */
    MEASURE_NOT_DONE, /* since a run succeeded; above every limit if none has. Needs views of a
                       * store with memory, with the last run */
    MEASURE_PAUSED,   /* since a KEY or a GLOB was paused */
    MEASURES
};

/* A measure above these is a warning or critical. */
struct threshold {
    bool given;
    int64_t warning, critical; /* warning is not above critical; equal: there is no warning */
};

/* The result of a survey of the store; borrowed. */
struct thresholds_subject {
    struct lock_views locks, pauses; /* the pauses are of GLOBs, which are their keys */
    const char *const *patterns;     /* that were asked for */
    size_t pattern_count;
};

/* Reads "CRIT" or "WARN:CRIT", durations or numbers. Returns NULL, or what is wrong with the text,
 * as "is not …" (a constant). */
const char *threshold_parse(enum measure measure, const char *text, struct threshold *threshold);

/* A line has fewer bytes than this; monitors show no more. */
#define THRESHOLDS_LINE_SIZE 2048

/* Judges all locks, and the pauses of GLOBs. Writes a line into *line, which is empty: the worst
 * first, then the patterns that match nothing, and behind a bar the numbers that such plugins print
 * for graphs. Returns the worst severity. */
enum severity thresholds_judge(const struct threshold thresholds[MEASURES],
                               const struct thresholds_subject *subject, struct strbuf *line);

/* Writes the line of a survey that has failed, with the reason. Returns SEVERITY_UNKNOWN. */
enum severity thresholds_unknown(const char *why, struct strbuf *line);
