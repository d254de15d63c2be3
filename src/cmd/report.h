/* --report-fd: how a run went, as one line of JSON for a program. */
#ifndef RLOCK_CMD_REPORT_H
#define RLOCK_CMD_REPORT_H

#include "cli/json.h"
#include "run/supervisor.h"

struct report {
    int fd; /* -1: there is no report */
    struct json_library json;
};

/* Prepares a report to the open descriptor that "text" names. The command does not inherit it,
 * except for 0 to 2, of which a copy is kept. Returns NULL, or what is wrong with the text. The
 * caller must call json_load(). */
const char *report_open(struct report *report, const char *text);

/* Writes the line. Returns false with errno on failure. */
bool report_write(const struct report *report, const struct supervisor_outcome *outcome,
                  const struct acquire_request *request);

#endif
