/* Time as rlock counts it: absolute moments on CLOCK_BOOTTIME, in nanoseconds.
 *
 * A lease continues at the server while this machine is suspended, so the clock must too; the wall
 * clock can be set by anyone. A one-field struct cannot be mixed up with a duration or a time_t. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct moment {
    int64_t ns;
};

#define US_PER_S   INT64_C(1000000)
#define NS_PER_US  INT64_C(1000)
#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

/* Never comes: later than every other moment. */
#define MOMENT_NEVER ((struct moment){INT64_MAX})

/* Returns the ns of the kernel's clock, not of a library that stands in front of the C library and
 * bends time (libfaketime, by LD_PRELOAD): leases go by the store's clock. Where a sandbox refuses
 * the call, the C library may still read the clock without one. */
static inline int64_t clock_of_kernel(clockid_t clock)
{
    struct timespec t;
#ifdef __LP64__
    int error = errno;
    if (syscall(SYS_clock_gettime, clock, &t) != 0) {
        errno = error;
        clock_gettime(clock, &t);
    }
#else /* the call's times may have another size than the C library's */
    clock_gettime(clock, &t);
#endif
    return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static inline struct moment moment_now(void)
{
    return (struct moment){clock_of_kernel(CLOCK_BOOTTIME)};
}

/* Has a timerfd of CLOCK_BOOTTIME become readable at that moment; "never": no more. -1 with errno.
 * By the kernel's call, as above. */
static inline int moment_alarm(int timer_fd, struct moment m)
{
    struct itimerspec alarm = {0};

    if (m.ns != MOMENT_NEVER.ns) {
        int64_t ns = m.ns > 0 ? m.ns : 1; /* 0 would disarm it */
        alarm.it_value.tv_sec = ns / NS_PER_SEC;
        alarm.it_value.tv_nsec = ns % NS_PER_SEC;
    }
#ifdef __LP64__
    return (int)syscall(SYS_timerfd_settime, timer_fd, TFD_TIMER_ABSTIME, &alarm, (void *)NULL);
#else
    return timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
#endif
}

/* A moment by a clock that stands still while this machine is suspended: time that its processes
 * have had. */
struct awake {
    int64_t ns;
};

static inline struct awake awake_now(void)
{
    return (struct awake){clock_of_kernel(CLOCK_MONOTONIC)};
}

/* ns since 1970 by this machine's wall clock: a guess at what the clocks of others say. */
static inline int64_t clock_wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* m moved by ns (may be negative); saturates, and "never" stays never. */
static inline struct moment moment_plus(struct moment m, int64_t ns)
{
    struct moment sum = MOMENT_NEVER;
    if (m.ns != INT64_MAX && __builtin_add_overflow(m.ns, ns, &sum.ns))
        sum.ns = ns < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static inline bool moment_reached(struct moment m, struct moment now)
{
    return m.ns <= now.ns;
}

/* Nanoseconds from "from" to "to"; negative when "to" is past. */
static inline int64_t moment_until(struct moment from, struct moment to)
{
    return to.ns == INT64_MAX ? INT64_MAX : to.ns - from.ns;
}

/* Other work does not delay a timer for as long: the machine or the process has stood still. */
#define STOOD_STILL_NS (200 * NS_PER_MS)

/* Whether m was so long ago, by the time that its timer fires, that something stood still. */
static inline bool moment_overslept(struct moment m, struct moment now)
{
    return moment_reached(moment_plus(m, STOOD_STILL_NS), now);
}

/* Returns for how many ns this machine has been suspended since its start. The clocks are read
 * again where this process stood still in between. */
static inline int64_t clock_suspended(void)
{
    struct moment before, after = moment_now();
    struct awake awake;

    do {
        before = after;
        awake = awake_now();
        after = moment_now();
    } while (moment_overslept(before, after));
    return after.ns - awake.ns;
}

/* The time that another process has had to do something. A lease ends by the clock, but a process
 * does nothing while the machine is suspended; so time in which this process stood still is not
 * counted. */
struct patience {
    struct moment looked; /* last; 0: not yet */
    int64_t ns;           /* until then */
};

/* Counts the time since the last look, which was a timer's turn ago, and returns the sum. */
static inline int64_t patience_look(struct patience *patience, struct moment now)
{
    int64_t passed = patience->looked.ns ? moment_until(patience->looked, now) : 0;

    /* A longer time has been none for a process that stood still, so most of it is not counted. */
    patience->ns += passed < STOOD_STILL_NS ? passed : STOOD_STILL_NS;
    patience->looked = now;
    return patience->ns;
}

static inline struct moment moment_min(struct moment a, struct moment b)
{
    return a.ns < b.ns ? a : b;
}

static inline struct moment moment_max(struct moment a, struct moment b)
{
    return a.ns > b.ns ? a : b;
}
