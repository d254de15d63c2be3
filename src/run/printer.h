/* A lock for a script: waited for, printed to standard output, and then left to the script; or to a
 * renewer, a process that stays behind and renews the lock as long as another process lives. */
#pragma once

#include "run/agent_process.h"

struct printer_plan {
    struct agent_plan agent; /* without a job */
    /* Writes what is printed, at most PRINTER_TEXT_SIZE bytes with its NUL: for a lock that is
     * held for so many ns at a time, with these grants. NULL: nothing is printed. */
    void (*compose)(void *arg, int64_t lease, const struct lock_grant *grants, char *text);
    void *arg;
};

#define PRINTER_TEXT_SIZE 4096 /* a pipe takes it in one piece */

struct printer_outcome {
    int status; /* exit status where signal is 0; STATUS_OK: it is held, and the text was printed */
    int signal; /* to die of: told to end while waiting; nothing is held */
    struct agent_process agent; /* for printer_confirm() */
};

/* Waits for the lock and prints it; the user is told of what goes wrong. The agent is forked
 * before the store is opened, so that a session with the store is the agent's from its start, and
 * the end of this process does not touch it. Only the standard streams may be open before. */
void printer_run(const struct printer_plan *plan, struct printer_outcome *outcome);
/* With "keep", after a success: the renewer must stay when this process has ended, which must be
 * the next thing that it does; if it is killed before this call, the lock is released. False if the
 * renewer has ended; the user is told, and the status says so. */
bool printer_confirm(const struct printer_plan *plan, struct printer_outcome *outcome);
