/* --report-fd: how a run went, as one line of JSON for a program. */
#ifndef RLOCK_CMD_REPORT_H
#define RLOCK_CMD_REPORT_H

#include "cli/json.h"
#include "run/supervisor.h"

/* Where the report goes. */
struct report {
    int fd; /* -1: nowhere */
    struct json_library json;
};

/* Makes ready to report to the open descriptor that "text" names, and has it closed when the
 * command starts (but for 0 to 2, which the command needs: a copy is kept). NULL, or what is wrong
 * with the text. json_load() is still to be called. */
const char *report_open(struct report *report, const char *text);

/* Writes the line. False with errno. */
bool report_write(const struct report *report, const struct supervisor_outcome *outcome,
                  const struct acquire_request *request);

#endif
