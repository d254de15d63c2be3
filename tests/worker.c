/* worker: a command under a lock that leaves a trace of every moment it was alive. For the tests.
 *
 *   worker LOG ID SECONDS [FLAG...]
 *
 * Appends "ID PID NANOSECONDS" (CLOCK_BOOTTIME) to LOG every 10 ms until SECONDS have passed, or
 * "forever": until it is killed. Two commands that excluded each other never have their lines
 * interleaved. Flags:
 *   ignore   TERM, INT and HUP are ignored
 *   tree     two more generations of processes do the same; the last one is in its own session
 *   title    overwrites its environment, as setproctitle(3) does
 * untraced cannot be traced by its own user, and so /proc hides it where it is mounted with hidepid
 *   grant    the first line has MODE, SLOT, KEYS and FENCES too, after tabs */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The variables that rlock has set for the command. */
static const char *grant(void)
{
    static const char *const names[] = {"RLOCK_MODE", "RLOCK_SLOT", "RLOCK_KEY", "RLOCK_FENCE"};
    static char text[400];
    size_t length = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && length < sizeof text; i++) {
        const char *value = getenv(names[i]);
        length += (size_t)snprintf(text + length, sizeof text - length, "\t%s", value ? value : "");
    }
    return text;
}

static void trace(const char *path, const char *id, double seconds, const char *more)
{
    const struct timespec tick = {.tv_nsec = 10000000};
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    do {
        char line[600];
        int length = snprintf(line, sizeof line, "%s %d %lld%s\n", id, (int)getpid(),
                              (long long)now_ns(), more);
        if (write(log, line, (size_t)length) != length)
            exit(99);
        more = "";
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

extern char **environ;

/* Arguments and environment are in one piece on the stack, and /proc shows what is there. */
static void overwrite_environment(void)
{
    for (char **entry = environ; *entry; entry++)
        memset(*entry, ' ', strlen(*entry));
}

/* The last generation starts the program anew, so that its environment is what /proc shows. */
static void last_generation(char **argv)
{
    char *plain[] = {argv[0], argv[1], argv[2], argv[3], NULL};
    setsid();
    execve("/proc/self/exe", plain, environ);
    _exit(98);
}

/* Only rlock is limited, not its command. */
static void raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 64;
    raise_limit();
    if (flag(argv, "title"))
        overwrite_environment();
    if (flag(argv, "untraced"))
        prctl(PR_SET_DUMPABLE, 0);
    if (flag(argv, "ignore")) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
    }
    if (flag(argv, "tree") && fork() == 0 && fork() == 0)
        last_generation(argv);
    double seconds = strcmp(argv[3], "forever") ? atof(argv[3]) : 1e6;
    trace(argv[1], argv[2], seconds, flag(argv, "grant") ? grant() : "");
    while (wait(NULL) > 0)
        ;
    return 0;
}
