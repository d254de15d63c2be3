/* worker: a command under a lock that leaves a trace of every moment it was alive. For the tests.
 *
 *   worker LOG ID SECONDS [FLAG...]
 *
 * Appends "ID PID NANOSECONDS" (CLOCK_BOOTTIME) to LOG every 10 ms until SECONDS have passed. Two
 * commands that excluded each other never have their lines interleaved. Flags:
 *   ignore   TERM, INT and HUP are ignored
 *   tree     two more generations of processes do the same; the last one is in its own session
 *   bare     the grandchild's environment is empty, too */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void trace(const char *path, const char *id, double seconds)
{
    const struct timespec tick = {.tv_nsec = 10000000};
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    do {
        char line[200];
        int length =
            snprintf(line, sizeof line, "%s %d %lld\n", id, (int)getpid(), (long long)now_ns());
        if (write(log, line, (size_t)length) != length)
            exit(99);
        nanosleep(&tick, NULL);
    } while (now_ns() < end);
    close(log);
}

static bool flag(char **argv, const char *name)
{
    for (char **arg = argv + 4; *arg; arg++)
        if (!strcmp(*arg, name))
            return true;
    return false;
}

/* The last generation starts the program anew, so that its environment is what /proc shows. */
static void last_generation(char **argv)
{
    char *plain[] = {argv[0], argv[1], argv[2], argv[3], NULL};
    extern char **environ;
    char *empty[] = {NULL};
    setsid();
    execve("/proc/self/exe", plain, flag(argv, "bare") ? empty : environ);
    _exit(98);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 64;
    if (flag(argv, "ignore")) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
    }
    if (flag(argv, "tree") && fork() == 0 && fork() == 0)
        last_generation(argv);
    trace(argv[1], argv[2], atof(argv[3]));
    while (wait(NULL) > 0)
        ;
    return 0;
}
