/* Leases: the moments of one, and their order for every length. */
#include "lease.h"

#include <inttypes.h>

#include "tap.h"

#define MS    NS_PER_MS
#define SEC   NS_PER_SEC
#define DAY   (86400 * SEC)
#define YEARS (3650 * DAY)

/* All counted from the moment of sending, in ms. */
static const struct {
    int64_t lease, kill_after;
    int64_t end, renew, kill, term, patience;
} rows[] = {
    {1000, 5000, 988, 333, 788, 538, 166},
    {1000, 0, 988, 333, 788, 788, 166},
    {1000, 100, 988, 333, 788, 688, 166},
    {1000, 250, 988, 333, 788, 538, 166},
    {3000, 5000, 2968, 1000, 2768, 2018, 500},
    {10000, 5000, 9898, 3333, 9698, 7198, 1666},
    {10000, 2000, 9898, 3333, 9698, 7698, 1666},
    {30000, 5000, 29698, 10000, 29098, 24098, 5000},
    {30000, 3600000, 29698, 10000, 29098, 21598, 5000},
    {30000, 315360000000, 29698, 10000, 29098, 21598, 5000},
    {60000, 5000, 59398, 20000, 58198, 53198, 5000},
    {3600000, 5000, 3563998, 1200000, 3491998, 3486998, 5000},
};

static const int64_t starts[] = {0, 1, 12345 * SEC + 678, 3 * YEARS, 8 * YEARS};

static const struct {
    unsigned attempt;
    int64_t least, most; /* ms */
} pauses[] = {
    {0, 25, 50},    {1, 50, 100},   {2, 100, 200},   {3, 200, 400},   {4, 400, 800},
    {5, 500, 1000}, {6, 500, 1000}, {63, 500, 1000}, {64, 500, 1000}, {4294967295U, 500, 1000},
};

static void same(const char *what, int64_t lease, int64_t got, int64_t wanted)
{
    if (!tap_ok(got == wanted, "%s of a lease of %" PRId64 " ms", what, lease / MS))
        tap_note("got %" PRId64 " ns, wanted %" PRId64 " ns", got, wanted);
}

static void test_rows(void)
{
    struct moment sent = {777 * SEC};

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t lease = rows[i].lease * MS;
        struct moment end = lease_end(sent, lease);
        struct moment term = lease_term_at(end, lease, rows[i].kill_after * MS);
        same("lease_end", lease, end.ns - sent.ns, rows[i].end * MS);
        same("lease_renew_at", lease, (lease_renew_at(sent, lease).ns - sent.ns) / MS,
             rows[i].renew);
        same("lease_kill_at", lease, lease_kill_at(end, lease).ns - sent.ns, rows[i].kill * MS);
        same("lease_term_at", lease, term.ns - sent.ns, rows[i].term * MS);
        same("lease_patience", lease, lease_patience(lease) / MS, rows[i].patience);
    }
}

/* sent < renew, one renewal without answer, TERM <= KILL < end < sent + lease. */
static bool in_order(struct moment sent, int64_t lease, int64_t kill_after)
{
    struct moment renew = lease_renew_at(sent, lease);
    struct moment end = lease_end(sent, lease);
    struct moment kill = lease_kill_at(end, lease);
    struct moment term = lease_term_at(end, lease, kill_after);

    return sent.ns < renew.ns && renew.ns + lease_patience(lease) < term.ns && term.ns <= kill.ns &&
           kill.ns + 200 * MS <= end.ns && end.ns < sent.ns + lease &&
           end.ns <= sent.ns + lease - lease / 100;
}

static void test_order(void)
{
    static const int64_t kill_after[] = {0, 1, 250 * MS, 5 * SEC, DAY, YEARS};

    for (size_t s = 0; s < COUNT(starts); s++) {
        int64_t wrong = 0;
        for (int64_t lease = LEASE_MIN_NS; lease <= YEARS && !wrong; lease += lease / 64 + 1)
            for (size_t k = 0; k < COUNT(kill_after); k++)
                if (!in_order((struct moment){starts[s]}, lease, kill_after[k]))
                    wrong = lease;
        if (!tap_ok(!wrong, "the moments of leases sent at %" PRId64 " ns are in order", starts[s]))
            tap_note("not with a lease of %" PRId64 " ns", wrong);
    }
}

static void test_never(void)
{
    tap_ok(lease_end(MOMENT_NEVER, SEC).ns == INT64_MAX, "a lease sent never ends never");
    tap_ok(lease_renew_at(MOMENT_NEVER, SEC).ns == INT64_MAX, "and is renewed never");
    tap_ok(lease_kill_at(MOMENT_NEVER, SEC).ns == INT64_MAX, "an end never kills never");
    tap_ok(lease_term_at(MOMENT_NEVER, SEC, SEC).ns == INT64_MAX, "and terminates never");
    tap_ok(lease_end((struct moment){INT64_MAX - 1}, SEC).ns == INT64_MAX, "an end saturates");
}

static void test_backoff(void)
{
    for (size_t i = 0; i < COUNT(pauses); i++) {
        unsigned attempt = pauses[i].attempt;
        int64_t least = lease_backoff(attempt, 0);
        int64_t most = lease_backoff(attempt, UINT32_MAX);
        int64_t half = lease_backoff(attempt, UINT32_MAX / 2);
        bool as_wanted = least == pauses[i].least * MS && most == pauses[i].most * MS &&
                         half > least && half < most;
        if (!tap_ok(as_wanted, "lease_backoff of attempt %u", attempt))
            tap_note("from %" PRId64 " over %" PRId64 " to %" PRId64 " ns", least, half, most);
    }
}

int main(void)
{
    test_rows();
    test_order();
    test_never();
    test_backoff();
    return tap_done();
}
