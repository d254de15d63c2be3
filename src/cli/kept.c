/* Until when a lock is kept, and how its command ended. */
#include "cli/kept.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/daytime.h"

char *kept_until(const struct lock_party *holder, bool seconds, char out[DAYTIME_SIZE])
{
    int64_t now, at;

    if (__builtin_add_overflow(holder->since_ms, holder->age_ms, &now) ||
        __builtin_add_overflow(now, holder->left_ms, &at))
        return strcpy(out, "?");
    return daytime_print(now, at, seconds, out);
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
    char until[DAYTIME_SIZE], end[80];

    print_end(&holder->end, end, sizeof end);
    snprintf(out, size, "kept until %s; %s", kept_until(holder, false, until), end);
    return out;
}

char *decision_print(const struct lock_party *by, const char *verb, int64_t later, char *out,
                     size_t size)
{
    const struct identity *who = &by->who;
    int64_t ns = by->left_ms * NS_PER_MS - later;
    char until[DAYTIME_SIZE], left[32];

    *out = '\0';
    text_append(out, size, "%s by ", verb);
    if (who->user[0])
        text_append(out, size, "%.60s@%.80s", who->user, who->host);
    else
        text_append(out, size, "%.80s", who->host[0] ? who->host : "someone");
    text_append(out, size, " until %s (%s left)", kept_until(by, false, until),
                duration_print(ns > 0 ? ns : 0, left, sizeof left));
    if (who->label[0])
        text_append(out, size, ": %.200s", who->label);
    return out;
}

char *reserved_print(const struct lock_party *holder, char *out, size_t size)
{
    return decision_print(holder, "reserved", 0, out, size);
}
