/* A line that says why rlock waits: on a terminal it is kept up to date, and goes away again;
 * elsewhere, and in a CI job, there is one every minute. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

/* Writes the line, of which at most so many columns are shown; SIZE_MAX: all. */
typedef void status_line_compose(void *arg, size_t columns, char *line, size_t size);

struct status_line {
    struct loop *loop;
    struct loop_timer timer;
    bool silent, begun;
    bool shown; /* the latest call has */
    status_line_compose *compose;
    void *arg;
};

/* loop is NULL if the caller calls status_line_show() itself. */
void status_line_init(struct status_line *status_line, struct loop *loop, bool silent,
                      status_line_compose *compose, void *arg);
/* Begins the wait, unless it had begun: the line is shown if it lasts for a second. */
void status_line_begin(struct status_line *status_line);
/* Shows the line. Returns after how many ns to show it anew; 0: never. */
int64_t status_line_show(struct status_line *status_line);
/* Wipes the line from a terminal; the next second draws it again. */
void status_line_wipe(struct status_line *status_line);
/* Ends the wait. */
void status_line_end(struct status_line *status_line);
