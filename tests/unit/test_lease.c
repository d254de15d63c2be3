/* Leases: the moments of one, and their order for every length. */
#include "lock/lease.h"

#include "tap.h"

#define MS    NS_PER_MS
#define SEC   NS_PER_SEC
#define DAY   (86400 * SEC)
#define YEARS (3650 * DAY)

/* All counted from the moment of sending, in ms. */
static const struct {
    int64_t lease, kill_after;
    int64_t end, renew, kill, term, timeout;
} rows[] = {
    {1000, 5000, 988, 333, 788, 700, 166},
    {1000, 0, 988, 333, 788, 788, 166},
    {1000, 50, 988, 333, 788, 738, 166},
    {1000, 250, 988, 333, 788, 700, 166},
    {2000, 5000, 1978, 666, 1778, 1400, 333},
    {3000, 5000, 2968, 1000, 2668, 2100, 500},
    {6000, 5000, 5938, 2000, 5438, 4200, 1000},
    {10000, 5000, 9898, 3333, 9398, 7000, 1666},
    {10000, 2000, 9898, 3333, 9398, 7398, 1666},
    {30000, 5000, 29698, 10000, 29098, 24098, 5000},
    {30000, 3600000, 29698, 10000, 29098, 21598, 5000},
    {30000, 315360000000, 29698, 10000, 29098, 21598, 5000},
    {60000, 5000, 59398, 20000, 58198, 53198, 5000},
    {3600000, 5000, 3563998, 1200000, 3491998, 3486998, 5000},
};

static const int64_t starts[] = {0, 1, 12345 * SEC + 678, 3 * YEARS, 8 * YEARS};

static void same(const char *what, int64_t lease, int64_t got, int64_t wanted)
{
    if (!tap_ok(got == wanted, "%s of a lease of %" PRId64 " ms", what, lease / MS))
        tap_note("got %" PRId64 " ns, wanted %" PRId64 " ns", got, wanted);
}

/* The rest of a lease, as one that begins now, ends when that would have, not later. */
static void test_rest(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t lease = rows[i].lease * MS, passed = lease / 7;
        struct moment from = {777 * SEC}, end = lease_end(from, lease);
        struct moment now = {from.ns + passed};
        int64_t rest = lease_rest(now, end);
        same("lease_rest, trusted until the same end,", lease,
             (lease_end(now, rest).ns - end.ns) / MS, 0);
        if (!tap_ok(rest <= lease - passed, "and no longer than what is left of it"))
            tap_note("%" PRId64 " ns of %" PRId64, rest, lease - passed);
    }
    same("lease_rest beyond its end", 1000 * MS, lease_rest((struct moment){9}, (struct moment){8}),
         0);
}

/* The moments of a lease that was sent at 777 s: its end, its renewal, KILL, TERM, and the time
 * for a request. */
static void test_rows(void)
{
    struct moment sent = {777 * SEC};

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t lease = rows[i].lease * MS;
        struct lease held = {lease_end(sent, lease), lease};
        struct moment term = lease_term_at(held, rows[i].kill_after * MS);
        same("lease_end", lease, held.end.ns - sent.ns, rows[i].end * MS);
        same("lease_renew_at", lease, (lease_renew_at(sent, lease).ns - sent.ns) / MS,
             rows[i].renew);
        same("lease_kill_at", lease, lease_kill_at(held).ns - sent.ns, rows[i].kill * MS);
        same("lease_term_at", lease, term.ns - sent.ns, rows[i].term * MS);
        same("lease_request_timeout", lease, lease_request_timeout(lease, 0) / MS, rows[i].timeout);
    }
}

/* sent < renew, one renewal without answer, or one that takes a third of the lease; TERM <= KILL <
 * end < sent + lease. */
static bool in_order(struct moment sent, int64_t lease, int64_t kill_after)
{
    struct moment renew = lease_renew_at(sent, lease);
    struct moment end = lease_end(sent, lease);
    struct moment kill = lease_kill_at((struct lease){end, lease});
    struct moment term = lease_term_at((struct lease){end, lease}, kill_after);

    return sent.ns < renew.ns && renew.ns + lease_request_timeout(lease, 0) < term.ns &&
           renew.ns + lease_round_trip_most(lease, true) + lease / 40 < term.ns &&
           term.ns <= kill.ns && kill.ns + 200 * MS <= end.ns && end.ns < sent.ns + lease &&
           end.ns <= sent.ns + lease - lease / 100;
}

/* For each lease up to years, and each --kill-after, the moments are in order: renewal, TERM,
 * KILL, end. */
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

/* The shortest lease that suffices for a round trip, renewed or fixed, and the time that a
 * request then gets. */
static void test_distance(void)
{
    static const struct {
        int64_t round_trip, renewed, fixed; /* ms: leases for it */
    } far[] = {{1, 1000, 1000},    {300, 1000, 1000},    {333, 1000, 1000},
               {334, 2000, 1000},  {612, 2000, 2000},    {999, 3000, 2000},
               {1000, 4000, 3000}, {9999, 30000, 20000}, {20000, 61000, 41000}};

    for (size_t i = 0; i < COUNT(far); i++) {
        int64_t trip = far[i].round_trip * MS;
        int64_t renewed = lease_for_round_trip(trip, true),
                fixed = lease_for_round_trip(trip, false);
        tap_ok(renewed == far[i].renewed * MS && fixed == far[i].fixed * MS &&
                   lease_round_trip_most(renewed, true) >= trip &&
                   lease_round_trip_most(fixed, false) >= trip,
               "a lease for a round trip of %" PRId64 " ms", far[i].round_trip);
    }
    tap_ok(lease_request_timeout(30 * SEC, SEC) == 5 * SEC &&
               lease_request_timeout(30 * SEC, 2 * SEC) == 8 * SEC &&
               lease_request_timeout(SEC, 300 * MS) == 1200 * MS,
           "the timeout of a request follows the round trip");
}

/* A lease without an end has no moment at all, and sums do not overflow. */
static void test_never(void)
{
    const struct lease never = {MOMENT_NEVER, SEC};

    tap_ok(lease_end(MOMENT_NEVER, SEC).ns == INT64_MAX, "a lease sent never ends never");
    tap_ok(lease_renew_at(MOMENT_NEVER, SEC).ns == INT64_MAX, "and is renewed never");
    tap_ok(lease_kill_at(never).ns == INT64_MAX, "an end never kills never");
    tap_ok(lease_term_at(never, SEC).ns == INT64_MAX, "and terminates never");
    tap_ok(lease_end((struct moment){INT64_MAX - 1}, SEC).ns == INT64_MAX, "an end saturates");
}

/* -- the manual -------------------------------------------------------------------------------- */

/* man/rlock.7; the caller frees. */
static char *read_manual(void)
{
    const char *top = getenv("top_srcdir");
    char path[4096], *text = calloc(1, 1 << 20);

    snprintf(path, sizeof path, "%s/man/rlock.7", top ? top : "..");
    FILE *file = fopen(path, "r");
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0)
        tap_note("cannot read %s", path);
    if (file)
        fclose(file);
    return text;
}

/* Rounded to milliseconds. */
static double seconds(struct moment at)
{
    return (double)((at.ns + MS / 2) / MS) / 1000;
}

/* The table of the manual, and its example, with the default --kill-after of 5 s. The last column
 * is cut to tenths: no outage may be promised to be harmless that is not. */
static void test_manual(void)
{
    static const int leases[] = {1, 5, 10, 30, 60};
    char *text = read_manual();

    for (size_t i = 0; i < COUNT(leases); i++) {
        const int64_t length = leases[i] * SEC;
        const struct lease lease = {lease_end((struct moment){0}, length), length};
        struct moment renew = lease_renew_at((struct moment){0}, length);
        struct moment term = lease_term_at(lease, 5 * SEC), kill = lease_kill_at(lease);
        int64_t outage = moment_until(renew, term) / (SEC / 10);
        char row[160];
        snprintf(row, sizeof row,
                 "\n.It %d s Ta %.3f Ta %.3f Ta %.3f Ta %.3f Ta %" PRId64 ".%" PRId64 " s\n",
                 leases[i], seconds(renew), seconds(term), seconds(kill), seconds(lease.end),
                 outage / 10, outage % 10);
        if (!tap_ok(strstr(text, row), "the manual's row of a lease of %d s", leases[i]))
            tap_note("wanted:%s", row);
        if (length != 30 * SEC)
            continue;
        snprintf(row, sizeof row, ".It %.3f s\nthe command gets\n", seconds(term));
        tap_ok(strstr(text, row), "the manual's example: TERM");
        snprintf(row, sizeof row, ".It %.3f s\nthe rest of the command", seconds(kill));
        tap_ok(strstr(text, row), "the manual's example: KILL");
        snprintf(row, sizeof row, ".It %.3f s\nthe lease counts as over", seconds(lease.end));
        tap_ok(strstr(text, row), "the manual's example: the end");
        snprintf(row, sizeof row, "succeeds before %.3f s,", seconds(term));
        tap_ok(strstr(text, row), "the manual's example: until when a renewal helps");
    }
    free(text);
}

int main(void)
{
    test_rows();
    test_rest();
    test_order();
    test_distance();
    test_never();
    test_manual();
    return tap_done();
}
