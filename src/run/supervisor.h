/* The supervisor: the process that the user sees. Parent and subreaper of the command, it owns
 * terminal, signals and the deadline; it touches no network, no DNS, nothing that can block. It
 * forks the agent, starts the command when the agent says that the lock is held, and ends it in
 * time when the lease is not renewed, whatever the agent does. */
#pragma once

#include "run/agent.h"
#include "run/job.h"
#include "run/notifier.h"

struct supervisor_plan {
    struct agent_plan agent;
    struct job_plan job;
};

/* How it went, for the exit status and the report. */
struct supervisor_outcome {
    enum outcome {
        OUTCOME_UNDECIDED,    /* while it runs */
        OUTCOME_COMPLETED,    /* the command ran to its end under the lock */
        OUTCOME_NOT_ACQUIRED, /* status says which way; the command was not started */
        OUTCOME_LOST,         /* the lock, before the command had ended */
        OUTCOME_TIMED_OUT,    /* the time limit, or the end of a lease that is not renewed */
        OUTCOME_NOT_EXECUTED, /* 126, 127 */
        OUTCOME_INTERRUPTED,  /* told to end while waiting: "signal" says by which signal */
        OUTCOME_FAILED,       /* the store, or the operating system */
    } outcome;
    int status;         /* rlock's exit status where signal is 0 */
    int signal;         /* rlock must die of this */
    int command_status; /* of the command; -1 if it was not run or died of a signal */
    int command_signal; /* that the command died of; 0: none */
    bool revoked;       /* LOST: because it was taken away */
    int64_t waited;     /* ns */
    int64_t held;       /* ns */
    bool granted;
    struct lock_grant grants[LOCK_KEYS_MAX]; /* granted: for each key */
};

/* Waits for the lock, runs the command under it, and has the lock released. The user is told of
 * what goes wrong. outcome: zeroed. */
void supervisor_run(const struct supervisor_plan *plan, struct supervisor_outcome *outcome);
