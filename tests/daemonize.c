/* daemonize: a command that goes to the background as daemons do. For the tests.
 *
 *   daemonize FORKS COMMAND [ARG...]
 *
 * Forks FORKS times; each time the parent ends at once, and the child begins a session of its own.
 * The last one executes COMMAND. A daemon forks twice; with more forks, it takes longer that there
 * is always one process that has just been born while its parent is gone already. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    for (int forks = atoi(argv[1]); forks > 0; forks--) {
        pid_t pid = fork();
        if (pid < 0)
            return 71;
        if (pid > 0)
            _exit(0);
        setsid();
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
