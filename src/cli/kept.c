/* Until when a lock is kept, and how its command ended. */
#include "cli/kept.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"

#define MS_PER_DAY (INT64_C(86400) * 1000)

/* Rounded to the minute that is next to it. */
static void print_time(const struct lock_party *holder, char *out, size_t size)
{
    bool far = holder->left_ms >= MS_PER_DAY;
    int64_t at;
    struct tm tm;

    bool sane = !__builtin_add_overflow(holder->since_ms, holder->age_ms, &at) &&
                !__builtin_add_overflow(at, holder->left_ms, &at);
    time_t rounded = sane ? (time_t)(at / 1000 + 30) : 0;
    if (!sane || !localtime_r(&rounded, &tm) ||
        !strftime(out, size, far ? "%Y-%m-%d %H:%M" : "%H:%M", &tm))
        snprintf(out, size, "?");
}

static void print_end(const struct lock_end *end, char *out, size_t size)
{
    const char *name = end->signal < SIGRTMIN ? sigabbrev_np(end->signal) : NULL;
    char ran[32];

    duration_print(end->ran_ms * NS_PER_MS, ran, sizeof ran);
    if (!end->known)
        snprintf(out, size, "the command has ended");
    else if (end->signal && name)
        snprintf(out, size, "the command died of signal %s after %s", name, ran);
    else if (end->signal)
        snprintf(out, size, "the command died of signal %d after %s", end->signal, ran);
    else
        snprintf(out, size, "the command ended with %d after %s", end->status, ran);
}

char *kept_print(const struct lock_party *holder, char *out, size_t size)
{
    char until[32], end[80];

    print_time(holder, until, sizeof until);
    print_end(&holder->end, end, sizeof end);
    snprintf(out, size, "kept until %s; %s", until, end);
    return out;
}
