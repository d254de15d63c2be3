/* The events of a run or an acquisition (run/events.h) in words: all that `run` and `acquire` say
 * while they go on is in one table here. */
#ifndef RLOCK_CLI_RUN_MESSAGES_H
#define RLOCK_CLI_RUN_MESSAGES_H

#include "cli/request.h"
#include "cli/status_line.h"
#include "run/events.h"

struct run_messages {
    struct run_events events; /* for the plan */
    const char *title, *command;
    const char *asked;                     /* the title before the lock is held */
    char held[REQUEST_TITLE_SIZE];         /* that of what is held, where that is less */
    const struct acquire_request *request; /* NULL: no lock is asked for */
    const struct store_address *address;   /* of whom */
    enum { CONFLICT_IS_ERROR, CONFLICT_IS_EXPECTED, CONFLICT_IS_SILENT } conflict;
    struct status_line wait;           /* that says why it waits */
    const struct run_refusal *refusal; /* while that is composed */
};

/* Makes the events be told on standard error. What is given is borrowed for as long as events
 * happen, and so is "messages". title: what is asked for; command: that is run, NULL: none is. */
void run_messages_init(struct run_messages *messages, const char *title, const char *command);
/* For who asks for a lock: what is asked for, and whether it matters that others hold it. */
void run_messages_of_request(struct run_messages *messages, const struct acquire_request *request,
                             const struct settings *settings);

#endif
