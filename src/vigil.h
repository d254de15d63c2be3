/* The end of another process, which need not be a child of ours. */
#ifndef RLOCK_VIGIL_H
#define RLOCK_VIGIL_H

#include "loop.h"
#include <stdbool.h>
#include <sys/types.h>

struct vigil {
    pid_t pid;
    unsigned long long
        born; /* its start, in the kernel's ticks: its number may be another's later */
    struct loop *loop;
    struct loop_io io;       /* a pidfd, -1 where the kernel or a sandbox has none */
    struct loop_timer timer; /* instead: looks again and again */
    void (*ended)(void *arg);
    void *arg;
};

/* Begins with the process as it is now. False with errno: ESRCH if there is none, or it has ended. */
bool vigil_open(struct vigil *vigil, pid_t pid);
/* Calls "ended" once from the loop when it has ended; it may have done so since vigil_open(). */
void vigil_watch(struct vigil *vigil, struct loop *loop, void (*ended)(void *arg), void *arg);
/* Allowed for one that was never opened, if it is zeroed. */
void vigil_close(struct vigil *vigil);

/* The name of the program that a process runs, as ps shows it; "" if it is not known. Returns out. */
char *vigil_name(pid_t pid, char *out, size_t size);

#endif
