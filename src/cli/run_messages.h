/* The events of a run or an acquisition (run/events.h) in words: one table has all messages of
 * `run` and `acquire`. */
#pragma once

#include "cli/request.h"
#include "cli/status_line.h"
#include "run/events.h"

struct run_messages {
    struct run_events events; /* for the plan */
    const char *title, *command;
    const char *asked;                     /* the title before the lock is held */
    char held[REQUEST_TITLE_SIZE];         /* the title of the KEYs held, if these are fewer */
    const struct acquire_request *request; /* NULL: no lock is asked for */
    const struct store_address *address;   /* of its store */
    enum { CONFLICT_IS_ERROR, CONFLICT_IS_EXPECTED, CONFLICT_IS_SILENT } conflict;
    struct status_line wait;           /* says why the command waits */
    const struct run_refusal *refusal; /* while that line is composed */
};

/* Prepares messages on standard error. The arguments and *messages are borrowed for as long as
 * events happen. title: the KEYs; command: the one that is run, or NULL. */
void run_messages_init(struct run_messages *messages, const char *title, const char *command);
/* Adds the request for a lock, and whether a conflict is an error. */
void run_messages_of_request(struct run_messages *messages, const struct acquire_request *request,
                             const struct settings *settings);
