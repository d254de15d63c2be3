/* A command and its surroundings, as all processes of a run know them. Borrowed for as long as the
 * run lasts. */
#pragma once

#include "run/environment.h"
#include "run/events.h"

enum on_lost { ON_LOST_STOP, ON_LOST_CONTINUE, ON_LOST_SIGNAL };

struct job_plan {
    const struct run_events *events;
    char *const *command;            /* argv, NULL-terminated */
    struct environment *environment; /* of it, and its lock if it has one; the grant is added */
    bool renew;                      /* the lease is renewed */
    int64_t at_most;                 /* ns from acquisition; 0: no limit */
    int64_t kill_after;              /* ns between TERM and KILL */
    bool cgroup;                     /* it must have one of its own */
    bool wait_descendants;           /* processes that the command leaves are under the lock, too */
    enum on_lost on_lost;
    int lost_signal;      /* ON_LOST_SIGNAL */
    const char *stop;     /* the command of --stop, for sh -c; NULL: there is none */
    const char *notify;   /* the same of --notify */
    int64_t notify_after; /* ns of a wait, or of holding the lock, that are long */
};
