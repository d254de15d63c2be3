/* A line that says why rlock waits: on a terminal one that is kept up to date and goes away again;
 * elsewhere, and in a CI job, one every minute. */
#ifndef RLOCK_CLI_STATUS_LINE_H
#define RLOCK_CLI_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

/* Writes the line, whenever it is shown; more than "columns" of it are not, SIZE_MAX: all are. */
typedef void status_line_compose(void *arg, size_t columns, char *line, size_t size);

struct status_line {
    struct loop *loop;
    struct loop_timer timer;
    bool silent, begun;
    bool shown; /* the user has read it, in this wait */
    status_line_compose *compose;
    void *arg;
};

/* loop: NULL for who calls status_line_show() itself. */
void status_line_init(struct status_line *status_line, struct loop *loop, bool silent,
                      status_line_compose *compose, void *arg);
/* The wait has begun; nothing if it had. */
void status_line_begin(struct status_line *status_line);
/* Shows it now. Returns after how many ns to show it anew; 0: never, as it is silent. */
int64_t status_line_show(struct status_line *status_line);
/* Takes the line away; on a terminal the next second draws it again. */
void status_line_wipe(struct status_line *status_line);
/* The wait is over. */
void status_line_end(struct status_line *status_line);

#endif
