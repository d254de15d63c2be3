/* shim_late: LD_PRELOADed, a process that is about to be the command stops first. For the tests. */
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
    va_list arguments;

    va_start(arguments, option);
    unsigned long first = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_PDEATHSIG && first == SIGKILL)
        kill(getpid(), SIGSTOP);
    return (int)syscall(SYS_prctl, option, first, 0, 0, 0);
}
