/* Pauses grow, up to a second, and are spread. */
#include "base/backoff.h"

#include "tap.h"

#define MS NS_PER_MS

static const struct {
    unsigned failures;
    int64_t least, most; /* ms */
} pauses[] = {
    {0, 25, 50},    {1, 50, 100},   {2, 100, 200},   {3, 200, 400},   {4, 400, 800},
    {5, 500, 1000}, {6, 500, 1000}, {63, 500, 1000}, {64, 500, 1000}, {4294967295U, 500, 1000},
};

/* The least and the greatest random number give the ends of the range, one between them a pause
 * within it. */
static void test_pause(unsigned failures, int64_t least, int64_t most)
{
    int64_t first = backoff_pause(failures, 0), last = backoff_pause(failures, UINT32_MAX);
    int64_t middle = backoff_pause(failures, UINT32_MAX / 2);

    if (!tap_ok(first == least && last == most && middle > first && middle < last,
                "the pause after failure %u", failures))
        tap_note("from %" PRId64 " over %" PRId64 " to %" PRId64 " ns", first, middle, last);
}

int main(void)
{
    const struct moment now = {777 * NS_PER_SEC};
    unsigned failures = 0;

    for (size_t i = 0; i < COUNT(pauses); i++)
        test_pause(pauses[i].failures, pauses[i].least * MS, pauses[i].most * MS);
    for (unsigned i = 0; i < 10; i++) {
        int64_t pause = moment_until(now, backoff_next(&failures, now));
        tap_ok(failures == i + 1 && pause >= backoff_pause(i, 0) &&
                   pause <= backoff_pause(i, UINT32_MAX),
               "the next attempt after failure %u", i);
    }
    return tap_done();
}
