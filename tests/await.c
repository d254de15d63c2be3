/* await FILE: ends when there is such a file, with 0. For the commands of the tests: a shell that
 * looks by itself starts a process, sleep, each time. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};

    if (argc != 2) {
        fputs("usage: await FILE\n", stderr);
        return 64;
    }
    while (access(argv[1], F_OK) != 0)
        nanosleep(&pause, NULL);
    return 0;
}
