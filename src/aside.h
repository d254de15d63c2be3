/* Work that may block, done by a short-lived process of its own while the loop goes on: a name that is looked up,
 * a server that is started. What it found out comes back whole through a pipe. */
#ifndef RLOCK_ASIDE_H
#define RLOCK_ASIDE_H

#include <stddef.h>

#define ASIDE_MAX 4096 /* bytes of a finding: a pipe takes as many in one piece (PIPE_BUF) */

struct loop;
struct aside;

/* Has "work" fill in a finding of "size" bytes, zeroed at first, in a copy of this process. "done" comes once,
 * later: with the finding, which is lent for the call, or NULL if that process ended without one. NULL with errno
 * if none could be started. */
struct aside *aside_start(struct loop *loop, void (*work)(const void *question, void *finding),
                          const void *question, size_t size,
                          void (*done)(void *owner, const void *finding), void *owner);
/* Ends the process; "done" comes no more. To be called after "done" too, also from within it. */
void aside_stop(struct aside *aside);

#endif
