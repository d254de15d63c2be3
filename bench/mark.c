/* mark LOG NAME [FIFO]: the command under the lock. It writes "+ NAME TIME", waits until FIFO's
 * writer has come and gone, and writes "- NAME TIME": nanoseconds of CLOCK_MONOTONIC. Linked
 * statically, so that it starts fast. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void note(int log, const char *name, char what)
{
    struct timespec now;
    char line[128];

    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(line, sizeof line, "%c %s %lld%09ld\n", what, name, (long long)now.tv_sec,
                          now.tv_nsec);
    if (write(log, line, (size_t)length) != length)
        _exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    int log = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (log < 0)
        return 1;
    note(log, argv[2], '+');
    if (argc > 3) {
        char byte;
        int gate = open(argv[3], O_RDONLY);
        while (gate >= 0 && read(gate, &byte, 1) > 0)
            ;
    }
    note(log, argv[2], '-');
    return 0;
}
