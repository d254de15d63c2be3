/* shim_begun: LD_PRELOADed, a process that has just started its command stops before it does
 * anything else. For the tests. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int setpgid(pid_t pid, pid_t group)
{
    if (pid > 0)
        kill(getpid(), SIGSTOP);
    return (int)syscall(SYS_setpgid, pid, group);
}
