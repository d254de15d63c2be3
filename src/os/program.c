/* Programs of this package that are not in PATH. */
#include "os/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    if (length > 0) {
        path[length] = '\0';
        char *last = strrchr(path, '/') + 1;
        snprintf(last, size - (size_t)(last - path), "%s", name);
        if (access(path, X_OK) == 0)
            return true;
    }
    snprintf(path, size, PROGRAM_DIRECTORY "/%s", name);
    return access(path, X_OK) == 0;
}
