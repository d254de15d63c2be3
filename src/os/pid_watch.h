/* The end of another process, which need not be a child of ours. */
#pragma once

#include "net/loop.h"
#include <stdbool.h>
#include <sys/types.h>

struct pid_watch {
    pid_t pid;
    unsigned long long born; /* in the kernel's ticks; a later process of that number has another */
    struct loop *loop;
    struct loop_io io;       /* a pidfd, -1 where the kernel or a sandbox has none */
    struct loop_timer timer; /* instead: looks again and again */
    void (*ended)(void *arg);
    void *arg;
};

/* Chooses the process that has this number now. False with errno: ESRCH if none is alive. Release
 * with pid_watch_close(). */
bool pid_watch_open(struct pid_watch *watch, pid_t pid);
/* Watches it from now on: the loop calls "ended" once, when the process has ended; also if it has
 * already. */
void pid_watch_start(struct pid_watch *watch, struct loop *loop, void (*ended)(void *arg),
                     void *arg);
/* Ends the watch. Harmless for one that was never opened, if it is zeroed. */
void pid_watch_close(struct pid_watch *watch);

/* Writes the name of the program that a process runs, as ps shows it; "" if it is not known.
 * Returns out. */
char *pid_watch_name(pid_t pid, char *out, size_t size);
