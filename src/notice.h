/* A line that says why rlock waits: on a terminal one that is kept up to date and goes away again,
 * elsewhere one after a second and one every minute. */
#ifndef RLOCK_NOTICE_H
#define RLOCK_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "loop.h"

struct notice {
    struct loop *loop;
    struct loop_timer timer;
    bool silent, begun;
    void (*compose)(void *arg, char *line, size_t size);
    void *arg;
};

/* "compose" writes the line, whenever it is shown. */
void notice_init(struct notice *notice, struct loop *loop, bool silent,
                 void (*compose)(void *arg, char *line, size_t size), void *arg);
/* The wait has begun; nothing if it had. */
void notice_begin(struct notice *notice);
/* Takes the line away; on a terminal the next second draws it again. */
void notice_wipe(struct notice *notice);
/* The wait is over. */
void notice_end(struct notice *notice);

#endif
