/* A lock for a script: waited for, printed to standard output, and then left to the script; or to a
 * renewer, a process that stays behind and renews the lock as long as another process lives. */
#ifndef RLOCK_RUN_ACQUISITION_H
#define RLOCK_RUN_ACQUISITION_H

#include <stdatomic.h>

#include "lock/keeper.h"
#include "os/pid_watch.h"
#include "run/events.h"

struct acquisition_plan {
    struct store_address address;
    const int *address_status; /* exit status where the store refuses its address */
    struct keeper_plan keeper;
    int conflict_status; /* exit status when not acquired */
    const struct run_events *events;
    struct pid_watch *keep; /* opened: the process to renew for; NULL: nothing renews it */
    /* What is to be printed, at most ACQUISITION_TEXT_SIZE with its NUL, when it is held: for so
     * many ns at a time, with these grants. */
    void (*compose)(void *arg, int64_t lease, const struct lock_grant *grants, char *text);
    void *arg;
};

#define ACQUISITION_TEXT_SIZE 4096 /* a pipe takes it in one piece */

struct acquisition_outcome {
    int status; /* exit status where signal is 0; STATUS_OK: it is held, and the text was printed */
    int signal; /* to die of: told to end while waiting; nothing is held */
    bool left_behind; /* this is the renewer, at its end */
    /* For acquisition_confirm(), in the process that has printed the text: a channel to the
     * renewer, -1: there is none; and what the renewer looks at when that process has ended. */
    int renewer;
    atomic_bool *delivered;
};

/* Nothing but the standard streams is open before. Where the lock is renewed, this forks the
 * renewer before the store is opened, and returns in both processes. */
void acquisition_run(const struct acquisition_plan *plan, struct acquisition_outcome *outcome);
/* The renewer is to stay when this process has ended, which has to be the next thing that it does:
 * whoever sees it killed takes nothing for delivered. False if the renewer has ended; the user is
 * told, and the status says so. */
bool acquisition_confirm(const struct acquisition_plan *plan, struct acquisition_outcome *outcome);

#endif
