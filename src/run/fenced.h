/* A command on the side of the resource: it runs while this process has a file locked, without a
 * store, a lease or a deadline. When this process is killed (kill -9), the command is killed as
 * well, with its process group, before the file is unlocked: by a process of its own, the guard,
 * which has the lock, too. */
#pragma once

#include "run/job.h"

struct fenced_plan {
    struct job_plan job; /* without a lock of its own */
    int lock;            /* descriptor of the locked file, which the command does not get; -1: no
                          * file, and no guard */
};

struct fenced_outcome {
    bool not_executed; /* the command: "status" says whether it was not found */
    int status;        /* rlock's exit status where signal is 0 */
    int signal;        /* rlock must die of this */
};

/* Runs the command to its end. Signals that this process gets are the command's. */
void fenced_run(const struct fenced_plan *plan, struct fenced_outcome *outcome);
