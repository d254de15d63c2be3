/* shim_late: LD_PRELOADed, a process that is about to be the command waits until the file exists
 * that SHIM_GO names. If it executes the command then, it makes the file SHIM_EXECUTED first. For
 * the tests. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
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
        while (access(getenv("SHIM_GO"), F_OK) < 0)
            usleep(10000);
    return (int)syscall(SYS_prctl, option, first, 0, 0, 0);
}

int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    int (*real)(const char *, char *const[], char *const[]);

    *(void **)&real = dlsym(RTLD_NEXT, "execvpe");
    close(open(getenv("SHIM_EXECUTED"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return real(file, arguments, environment);
}
