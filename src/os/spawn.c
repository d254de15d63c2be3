#include "os/spawn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/kernel.h"

/* A program whose file is in memory is executed within a millisecond. Both processes could run at
 * once, but taking turns is cheaper. */
#define WAIT_NS (20 * NS_PER_MS)

/* Calls execve(2) without the C library, whose function sets errno: each thread has one, but not
 * each process. */
#if defined __x86_64__
#define CAN_SHARE true
int spawn_execute(const char *path, char *const *argv, char *const *environment)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_execve), "D"(path), "S"(argv), "d"(environment)
                     : "rcx", "r11", "memory");
    return (int)-result;
}
#elif defined __aarch64__
#define CAN_SHARE true
int spawn_execute(const char *path, char *const *argv, char *const *environment)
{
    register long number __asm__("x8") = SYS_execve;
    register long first __asm__("x0") = (long)path;
    register long second __asm__("x1") = (long)argv;
    register long third __asm__("x2") = (long)environment;

    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third) : "memory");
    return (int)-first;
}
#else
#define CAN_SHARE false
int spawn_execute(const char *path, char *const *argv, char *const *environment)
{
    execve(path, argv, environment);
    return errno;
}
#endif

pid_t spawn_start(struct spawn *spawn, int (*work)(void *arg), void *arg)
{
    const int flags = CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;

    if (!CAN_SHARE)
        return -1;
    pid_t pid =
        clone(work, spawn->stack + SPAWN_STACK, flags, arg, &spawn->shares, NULL, &spawn->shares);
    if (pid > 0) /* the kernel has set "shares" to the pid, and sets it to 0 */
        kernel_wait_while(&spawn->shares, pid, WAIT_NS);
    else
        spawn->shares = 0;
    return pid;
}

bool spawn_shares(const struct spawn *spawn)
{
    return __atomic_load_n(&spawn->shares, __ATOMIC_ACQUIRE) != 0;
}
