/* shim_apart: LD_PRELOADed, what the process forks has clocks that are a day ahead of its own, as
 * below "unshare --time" before Linux 6.1. For the tests. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
    static const char ahead[] = "boottime 86400 0\n";

    unsetenv("LD_PRELOAD");
    if (unshare(CLONE_NEWTIME) != 0)
        _exit(99);
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (write(fd, ahead, strlen(ahead)) < 0)
        _exit(99);
    close(fd);
}
