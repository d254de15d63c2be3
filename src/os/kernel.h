/* The system calls that are newer than Linux 4.18, which is the oldest kernel that rlock runs on.
 * Older kernels lack them, and a sandbox (seccomp(2)) may refuse these and others, by ENOSYS, EPERM
 * or another errno (SystemCallErrorNumber= of systemd). No other file makes them.
 *
 *   call                  since   without it
 *   pidfd_send_signal()   5.1     kill() by the number
 *   pidfd_open()          5.3     kill() by the number; the end of a process is looked for in /proc
 *   clone3() to a cgroup  5.7     fork(); the child enters the cgroup by itself
 *   close_range()         5.9     close() of what /proc/self/fd lists, or of each number
 *   cgroup.kill           5.14    no cgroup (cgroup_make())
 *   signals to the group  6.9     kill() by the number of the group
 *   of a pidfd
 *
 * Refused are other calls as well, by EINVAL where an emulator of processors (qemu-user) does not
 * have an option; then rlock names the one that it needs, and begins nothing (kernel_refused()).
 *
 * A number may be given to another process between a look at it and kill(): without the first two,
 * a process that stands still just there may signal a stranger's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens a pidfd, close-on-exec. -1 with errno: ESRCH for a process that there is not, and where
 * "pid" is the number of a thread EINVAL or ENOENT. */
int kernel_pidfd(pid_t pid);
/* Signals the process "pid", by its pidfd if that is not -1. The caller has seen that the number is
 * still that process's, when the pidfd was open. */
void kernel_signal(pid_t pid, int pidfd, int signo);
/* Whether the process of a pidfd has ended and been reaped; false if the kernel does not tell. */
bool kernel_has_gone(int pidfd);
/* Signals the process group whose leader has that pidfd. False if it cannot be done by that. */
bool kernel_signal_group(int pidfd, int signo);

/* Forks a process into the cgroup with that open directory. Returns as fork(). */
pid_t kernel_fork_into(int cgroup);

/* Returns what is wrong if this process forks into other name spaces than its own (unshare(2)), for
 * the user; NULL: nothing is, or /proc does not tell. In another one of processes, a process cannot
 * know whether its parent lives. In another one of clocks, times cannot be compared; a program is
 * executed in such a state before Linux 6.1 only. */
const char *kernel_forks_elsewhere(void);
#define KERNEL_FORKS_ELSEWHERE                                                                     \
    "what it starts would be in another name space of processes than itself: unshare needs --fork"

/* Whether the kernel lets this process find, group, signal and await others, as a guard of a
 * command must; if not, errno says why. */
bool kernel_lets_guard(void);
/* To be called after a failure with errno. Returns the name of a call without which nothing is
 * begun, with its errno, if the kernel refuses one; NULL, with errno as it was: it does not. */
const char *kernel_refused(void);
/* Returns the name of a call that the kernel refuses, with errno, and whose failure would go
 * unnoticed, or leave rlock waiting in silence: its processes talk to each other by these calls,
 * and learn by them that one has ended. NULL: it refuses none. */
const char *kernel_refuses_silently(void);

/* Waits until the word is not "value" any more, as the kernel tells (futex(2)), but at most "most"
 * ns. May return earlier. */
void kernel_wait_while(const int *word, int value, int64_t most);

/* Closes all descriptors from "first" to "last"; a "last" of -1 is the highest. */
void kernel_close(int first, int last);
