/* Reading a password file. */
#include "secret.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

char *secret_read(const char *path, char *fault, size_t size)
{
    char line[1026];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

    if (n < 0)
        snprintf(fault, size, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NULL;
    line[n] = '\0';
    size_t length = strcspn(line, "\r\n");
    if (length >= sizeof line - 1) {
        snprintf(fault, size, "%s: its first line is longer than 1024 bytes", path);
        return NULL;
    }
    if (length < (size_t)n && line[length] == '\0') {
        snprintf(fault, size, "%s: its first line has a NUL byte in it", path);
        return NULL;
    }
    line[length] = '\0';
    return mem_strdup(line);
}
