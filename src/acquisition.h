/* A lock for a script: waited for, handed over on standard output, and then left to the script, or to a
 * process that stays behind and renews it as long as the script's lives. */
#ifndef RLOCK_ACQUISITION_H
#define RLOCK_ACQUISITION_H

#include "keeper.h"
#include "vigil.h"

struct acquisition_plan {
    struct store_address address;
    int address_status; /* exit status where the store refuses its address */
    struct keeper_plan keeper;
    const char *title; /* of the lock, in messages */
    bool report_waiting;
    int conflict_status; /* exit status when not acquired */
    struct vigil *keep;  /* opened: the process to renew for; NULL: nothing renews it */
    /* What is to be printed, at most ACQUISITION_TEXT_SIZE with its NUL, when it is held. */
    void (*compose)(void *arg, const struct lock_grant *grants, char *text);
    void *arg;
};

#define ACQUISITION_TEXT_SIZE 4096 /* a pipe takes it in one piece */

struct acquisition_outcome {
    int status; /* exit status where signal is 0; STATUS_OK: it is held, and the text was printed */
    int signal; /* to die of: told to end while waiting; nothing is held */
    bool left_behind; /* this is the process that stayed behind, at its end */
};

/* Says itself what goes wrong. Everything but the standard streams is closed first. */
void acquisition_run(const struct acquisition_plan *plan, struct acquisition_outcome *outcome);

#endif
