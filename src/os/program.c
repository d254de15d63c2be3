#include "os/program.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool program_find(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    /* A container may be without /proc; the kernel also tells the path that it was executed by. */
    unsigned long executed = getauxval(AT_EXECFN);

    if (length > 0)
        path[length] = '\0';
    else
        snprintf(path, size, "%s", executed ? (const char *)executed : "");
    if (strchr(path, '/')) {
        char *last = strrchr(path, '/') + 1;
        snprintf(last, size - (size_t)(last - path), "%s", name);
        if (access(path, X_OK) == 0)
            return true;
    }
    snprintf(path, size, PROGRAM_DIRECTORY "/%s", name);
    return access(path, X_OK) == 0;
}
