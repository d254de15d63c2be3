/* Starting a process and its terminal: fork, exec, process groups, the foreground, stop and continue,
 * the end. The only file that forks a command, sets a process group or the terminal's foreground. */
#ifndef RLOCK_CHILD_H
#define RLOCK_CHILD_H

#include "clock.h"
#include <signal.h>
#include <sys/types.h>

/* The signal state this process was started with, to be given back to the command. */
struct inherited {
    sigset_t mask;
    bool ignores_chld;
};

struct child {
    pid_t pid; /* leader of its process group; 0 when it has been reaped */
    int terminal; /* the controlling terminal, -1 if there is none or we are not in its foreground */
    bool has_terminal; /* the command's group is in the foreground */
};

#endif
