/* A process that executes a program, and shares the memory of this one until it does, as by
 * vfork(): the copy that fork() makes is a twentieth of a short run. But vfork() has its caller
 * wait until the program is executed, which takes as long as a file system needs to answer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPAWN_STACK ((size_t)32 * 1024)

struct spawn {
    int shares; /* the kernel clears it when the process does not share this memory any more */
    char stack[SPAWN_STACK] __attribute__((aligned(16)));
};

/* Starts a process that runs "work", which executes a program or ends; waits for that, but hardly
 * longer than is usual. All signals must be blocked. Returns its pid; -1 where no process can share
 * memory: the caller then uses fork().
 *
 * Both processes may run, in the same memory and with the same errno: "work" calls nothing that may
 * fail but spawn_execute(), and "spawn" and "arg" stay while spawn_shares(). */
pid_t spawn_start(struct spawn *spawn, int (*work)(void *arg), void *arg);
/* Whether the process may still use the memory. */
bool spawn_shares(const struct spawn *spawn);
/* Executes a program as execve() does, without a change of errno: if that fails, it returns the
 * error number. */
int spawn_execute(const char *path, char *const *argv, char *const *environment);
