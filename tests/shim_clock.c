/* shim_clock: LD_PRELOADed, it gives a process another time of day. For the tests.
 *
 * The text in the file $SHIM_CLOCK_FILE says which: a number of milliseconds to add, or "freeze" to
 * stand still from now on. The file is mapped, so overwrite it in place, never cut
 * short. CLOCK_MONOTONIC and CLOCK_BOOTTIME stay as they are, unless $SHIM_CLOCK_ALL is set. A wait
 * until a time of day takes what is left by that clock: threads of MariaDB and of jemalloc would
 * return from it at once, again and again. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    SIZE = 32,
    YEAR_2001 = 1000000000, /* s; an uptime is less */
};

int clock_gettime(clockid_t clock, struct timespec *t);
int gettimeofday(struct timeval *restrict tv, void *restrict zone);
time_t time(time_t *out);
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until);

static const char *setting(void)
{
    static const char *map;
    const char *path = getenv("SHIM_CLOCK_FILE");
    if (!map && path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *got = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
        map = got == MAP_FAILED ? NULL : got;
        close(fd);
    }
    return map ? map : "0";
}

static void bend(struct timespec *t)
{
    static struct timespec frozen;
    const char *text = setting();
    if (!strncmp(text, "freeze", 6)) {
        if (frozen.tv_sec == 0)
            frozen = *t;
        *t = frozen;
        return;
    }
    frozen.tv_sec = 0;
    long long ms = strtoll(text, NULL, 10);
    long long ns = t->tv_nsec + ms % 1000 * 1000000;
    t->tv_sec += (time_t)(ms / 1000) + (ns < 0 ? -1 : ns / 1000000000);
    t->tv_nsec = (ns + 1000000000) % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (result == 0 &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || getenv("SHIM_CLOCK_ALL")))
        bend(t);
    return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec now, bent;
    if (until->tv_sec < YEAR_2001)
        return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, until);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    bent = now;
    bend(&bent);
    long long ns = (long long)until->tv_nsec + now.tv_nsec - bent.tv_nsec + 1000000000;
    struct timespec end = {.tv_sec = until->tv_sec + now.tv_sec - bent.tv_sec - 1 + ns / 1000000000,
                           .tv_nsec = ns % 1000000000};
    return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &end);
}
