/* Locks as Prometheus text: each family once, labels escaped, nothing told of a store that is
 * away. */
#include "cli/metrics.h"

#include "tap.h"

static const struct lock_party parties[] = {
    {.owner = "a", .age_ms = 41250, .count = 2},
    {.owner = "a.b", .age_ms = 1000, .count = 1},
    {.owner = "k", .age_ms = 99000, .kept = true, .count = 1},
    {.owner = "w", .age_ms = 7},
};
static struct lock_view locks[] = {
    ROW(.key = "deploy", .mode = LOCK_LIMIT, .limit = 3, .holders = parties, .holder_count = 3,
        .waiters = &parties[3], .waiter_count = 1,
        .memory = {.acquired = 12,
                   .ended = 10,
                   .waited_ms = 61005,
                   .success_ended_ms = 1795162530123,
                   .refused = {1, 5},
                   .timed_out = {2, 1795162530007},
                   .lost = {3, 0},
                   .expired = {4, 0},
                   .revoked = {5, 0}}),
    {.key = "free", .limited = true, .stored_limit = 0},
    {.key = "a\"b\\c\nd\xff\xc3\xa9"},
};

static const struct {
    const char *what, *wanted;
    int times;
} rows[] = {
    {"starts with the store",
     "# HELP rlock_up Whether the lock store has answered.\n"
     "# TYPE rlock_up gauge\nrlock_up 1\n# HELP ",
     1},
    {"a nested holder does not count", "\nrlock_holders{key=\"deploy\"} 2\n", 1},
    {"kept", "\nrlock_kept{key=\"deploy\"} 1\n", 1},
    {"one that is kept holds nothing up", "\nrlock_held_seconds{key=\"deploy\"} 41.250\n", 1},
    {"waiters", "\nrlock_waiters{key=\"deploy\"} 1\n", 1},
    {"wait", "\nrlock_wait_seconds{key=\"deploy\"} 0.007\n", 1},
    {"free", "\nrlock_held_seconds{key=\"free\"} 0.000\n", 1},
    {"limit", "\nrlock_limit{key=\"deploy\"} 3\n", 1},
    {"a stored limit", "\nrlock_limit{key=\"free\"} 0\n", 1},
    {"no limit", "rlock_limit{", 2},
    {"escaped", "\nrlock_holders{key=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\"} 0\n", 1},
    {"TYPE once a family", "# TYPE rlock_holders ", 1},
    {"acquired", "\nrlock_acquired_total{key=\"deploy\"} 12\n", 1},
    {"refused", "\nrlock_refused_total{key=\"deploy\"} 1\n", 1},
    {"timed out", "\nrlock_timed_out_total{key=\"deploy\"} 2\n", 1},
    {"lost", "\nrlock_lost_total{key=\"deploy\"} 3\n", 1},
    {"expired", "\nrlock_expired_total{key=\"deploy\"} 4\n", 1},
    {"revoked", "\nrlock_revoked_total{key=\"deploy\"} 5\n", 1},
    {"waited", "\nrlock_waited_seconds_total{key=\"deploy\"} 61.005\n", 1},
    {"success",
     "\nrlock_last_end_timestamp_seconds{key=\"deploy\",outcome=\"success\"} 1795162530.123\n", 1},
    {"what never was has no time", "\nrlock_last_end_timestamp_seconds{", 2},
    {"ends", "\n# EOF\n", 1},
};

static int count_of(const char *text, const char *part)
{
    int count = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

int main(void)
{
    struct lock_view glob = {.key = "ci/\"*"};
    const struct lock_list none = {.minimum = ""},
                           here = {.locks = {locks, COUNT(locks)}, .pauses = {&glob, 1}};
    struct strbuf out = {0};

    metrics_render(&out, &here, true);
    for (size_t i = 0; i < COUNT(rows); i++)
        tap_ok(count_of(out.text, rows[i].wanted) == rows[i].times, "%s", rows[i].what);
    tap_ok(strstr(out.text, "\nrlock_paused{glob=\"ci/\\\"*\"} 1\n"), "a GLOB that is paused");
    strbuf_cut(&out, 0);
    metrics_render(&out, NULL, true);
    tap_is(strstr(out.text, "\nrlock_up"), "\nrlock_up 0\n# EOF\n", "away", "");
    strbuf_cut(&out, 0);
    metrics_render(&out, &here, false);
    tap_ok(!strstr(out.text, "_total") && strstr(out.text, "rlock_holders{"),
           "a store without memory");
    strbuf_cut(&out, 0);
    metrics_render(&out, &none, true);
    tap_is(strstr(out.text, "\nrlock_up"), "\nrlock_up 1\n# EOF\n", "no locks", "");
    strbuf_free(&out);
    return tap_done();
}
