/* shim_fork: LD_PRELOADed, it stops the process before its second fork(), and behind it once more.
 * Of rlock run this is the fork for the command of --stop: the first one is for the agent, and the
 * command is started by clone(). For the tests. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

pid_t fork(void)
{
    static pid_t owner;
    static int count;
    pid_t (*real)(void);

    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    if (owner == 0)
        owner = getpid();
    bool second = owner == getpid() && ++count == 2;
    if (second)
        raise(SIGSTOP);
    pid_t pid = real();
    /* cppcheck-suppress knownConditionTrueFalse */
    if (second && pid > 0)
        raise(SIGSTOP);
    return pid;
}
