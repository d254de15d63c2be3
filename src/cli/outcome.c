/* How runs ended. */
#include "cli/outcome.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"

static void print_exit(const struct lock_end *end, char *out, size_t size)
{
    const char *name = end->signal < SIGRTMIN ? sigabbrev_np(end->signal) : NULL;

    if (!end->known)
        *out = '\0';
    else if (end->signal && name)
        snprintf(out, size, "signal %s", name);
    else if (end->signal)
        snprintf(out, size, "signal %d", end->signal);
    else
        snprintf(out, size, "exit %d", end->status);
}

char *outcome_print(const struct lock_end *end, char out[OUTCOME_SIZE])
{
    static const char *const names[] = {[LOCK_TIMED_OUT] = "timed out",
                                        [LOCK_LOST] = "lost",
                                        [LOCK_EXPIRED] = "expired",
                                        [LOCK_REVOKED] = "revoked",
                                        [LOCK_KILLED] = "rlock was killed"};

    if (end->how == LOCK_USED)
        print_exit(end, out, OUTCOME_SIZE);
    else
        snprintf(out, OUTCOME_SIZE, "%s", names[end->how]);
    return out;
}

char *revocation_print(const struct revocation *revoked, char out[REVOCATION_SIZE])
{
    char by[UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX)], why[sizeof by];

    utf8_escape(revoked->by, by, sizeof by);
    utf8_escape(revoked->why, why, sizeof why);
    snprintf(out, REVOCATION_SIZE, "%s%s%s%s", *by ? " by " : "", by, *why ? ": " : "", why);
    return out;
}

char *revocation_print_past(const struct revocation *revoked, char out[REVOCATION_SIZE])
{
    char ago[32];

    duration_print(revoked->ago_ms * NS_PER_MS, ago, sizeof ago);
    snprintf(out, REVOCATION_SIZE, "taken away %s ago%s%s%s%s", ago, revoked->by[0] ? " by " : "",
             revoked->by, revoked->why[0] ? ": " : "", revoked->why);
    return out;
}

bool outcome_is_failure(const struct lock_end *end)
{
    return end->how != LOCK_USED || (end->known && (end->signal || end->status));
}
