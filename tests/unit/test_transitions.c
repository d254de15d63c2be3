/* Transitions of locks between two surveys. */
#include "cmd/transitions.h"

#include "tap.h"

/* The store's clock at the second look; the first was half a second before. */
#define NOW 10000
#define GAP 500

static const char *const kind_names[TRANSITION_KINDS] = {
    [TRANSITION_WAITING] = "waiting",   [TRANSITION_REFUSED] = "refused",
    [TRANSITION_PAUSED] = "paused",     [TRANSITION_RESUMED] = "resumed",
    [TRANSITION_ACQUIRED] = "acquired", [TRANSITION_SUPERSEDED] = "superseded",
    [TRANSITION_RELEASED] = "released", [TRANSITION_TIMED_OUT] = "timed-out",
    [TRANSITION_LOST] = "lost",         [TRANSITION_EXPIRED] = "expired",
    [TRANSITION_REVOKED] = "revoked",   [TRANSITION_MISSED] = "missed"};

/* One came at 9000, the other at 9800, after it had waited for 200 ms. */
#define A ROW(.owner = "a", .since_ms = 9000, .age_ms = 1000, .fence = 1)
#define B ROW(.owner = "b", .since_ms = 9800, .age_ms = 200, .waited_ms = 200, .fence = 2)
static const struct lock_party a = A, b = B, both[] = {A, B};
static const struct lock_party leased = {.owner = "a", .since_ms = 9000, .left_ms = 2000};
static const struct lock_party kept = {
    .owner = "a", .since_ms = 9000, .age_ms = 1000, .fence = 1, .kept = true};
static const struct lock_party first = {
    .owner = "a", .since_ms = 9000, .age_ms = 1000, .in_group = true, .group = "g"};
static const struct lock_party latest = {
    .owner = "b", .since_ms = 9800, .age_ms = 200, .in_group = true, .group = "g"};
static const struct lock_party other = {
    .owner = "b", .since_ms = 9800, .age_ms = 200, .in_group = true, .group = "h"};

#define RUN(ending)                                                                                \
    {                                                                                              \
        .by = {.owner = "c", .since_ms = 9700, .fence = 3, .end = {.how = (ending)}},              \
        .ended_ms = 9900, .ended_ago_ms = 100, .held_ms = 200                                      \
    }
static const struct lock_run used = {
    .by = {.owner = "a", .since_ms = 9000, .fence = 1}, .ended_ms = 9750, .ended_ago_ms = 250};
static const struct lock_run dead = {
    .by = {.owner = "a", .since_ms = 8000, .fence = 1, .end = {.how = LOCK_EXPIRED}},
    .ended_ms = 9000,
    .ended_ago_ms = 1000,
    .held_ms = 1000};
static const struct lock_run runs[] = {RUN(LOCK_USED), RUN(LOCK_TIMED_OUT), RUN(LOCK_LOST),
                                       RUN(LOCK_EXPIRED), RUN(LOCK_REVOKED)};

#define LOCK(...)     ROW(.key = "k", __VA_ARGS__)
#define HELD(party)   .holders = &(party), .holder_count = 1
#define WAITED(party) .waiters = &(party), .waiter_count = 1
#define RAN(run, number)                                                                           \
    .runs = &(run), .run_count = 1, .memory = {.acquired = (number), .ended = (number)}
#define PAUSED(since, left)                                                                        \
    .pause = {.owner = "pause", .since_ms = (since), .age_ms = NOW - (since), .left_ms = (left)}
#define NONE ROW(.key = NULL)

/* The lock in two surveys; without a key it is missing. "KIND OWNER TIME" each. */
static const struct {
    const char *what;
    struct lock_view before, after;
    const char *wanted;
} rows[] = {
    ROW("nothing", LOCK(HELD(a)), LOCK(HELD(a)), ""),
    ROW("free", NONE, LOCK(), ""),
    ROW("came", NONE, LOCK(HELD(a)), "acquired a 9000"),
    ROW("came after a wait that was not seen", NONE, LOCK(HELD(b)),
        "waiting b 9600, acquired b 9800"),
    ROW("came after a wait", LOCK(WAITED(b)), LOCK(HELD(b)), "acquired b 9800"),
    ROW("one more reader", LOCK(HELD(a)), LOCK(.holders = both, .holder_count = 2),
        "waiting b 9600, acquired b 9800"),
    ROW("waits", LOCK(HELD(a)), LOCK(HELD(a), WAITED(b)), "waiting b 9800"),
    ROW("went without it", LOCK(HELD(a), WAITED(b)), LOCK(HELD(a)), "refused b 10000"),
    ROW("sent away", LOCK(WAITED(first)), LOCK(WAITED(latest)),
        "waiting b 9800, superseded a 10000"),
    ROW("sent away by who has it now", LOCK(WAITED(first)), LOCK(HELD(latest)),
        "acquired b 9800, superseded a 10000"),
    ROW("not by another group", LOCK(WAITED(first)), LOCK(WAITED(other)),
        "waiting b 9800, refused a 10000"),
    ROW("released", LOCK(HELD(a)), LOCK(RAN(used, 1)), "released a 9750"),
    ROW("released, by who remembers nothing", LOCK(HELD(a)), NONE, "released a 10000"),
    ROW("released unused", LOCK(HELD(leased)), LOCK(.fence = 1), "released a 10000"),
    ROW("its lease is over", LOCK(HELD(a)), LOCK(.fence = 1), ""),
    ROW("found dead", LOCK(.fence = 1), LOCK(RAN(dead, 1), .fence = 1), "expired a 9000"),
    ROW("kept, and free", LOCK(HELD(kept), RAN(used, 1)), LOCK(RAN(used, 1)), ""),
    ROW("a run between", LOCK(), LOCK(RAN(runs[0], 1)), "acquired c 9700, released c 9900"),
    ROW("timed out", LOCK(), LOCK(RAN(runs[1], 1)), "acquired c 9700, timed-out c 9900"),
    ROW("lost", LOCK(), LOCK(RAN(runs[2], 1)), "acquired c 9700, lost c 9900"),
    ROW("expired", LOCK(), LOCK(RAN(runs[3], 1)), "acquired c 9700, expired c 9900"),
    ROW("revoked", LOCK(), LOCK(RAN(runs[4], 1)), "acquired c 9700, revoked c 9900"),
    ROW("handed over", LOCK(HELD(a), WAITED(b)), LOCK(HELD(b), RAN(used, 1)),
        "released a 9750, acquired b 9800"),
    ROW("more than is remembered", LOCK(), LOCK(RAN(runs[0], 3)),
        "missed - 9700, acquired c 9700, released c 9900"),
    ROW("forgotten", LOCK(RAN(used, 9)), LOCK(RAN(runs[0], 1)),
        "missed - 9700, acquired c 9700, released c 9900"),
    ROW("paused", LOCK(HELD(a)), LOCK(HELD(a), PAUSED(9600, 5000)), "paused pause 9600"),
    ROW("paused, and never used", NONE, LOCK(PAUSED(9600, 5000)), "paused pause 9600"),
    ROW("still paused", LOCK(PAUSED(9000, 5000)), LOCK(PAUSED(9000, 4500)), ""),
    ROW("paused anew", LOCK(PAUSED(9000, 5000)), LOCK(PAUSED(9600, 90)), "paused pause 9600"),
    ROW("resumed", LOCK(HELD(a), PAUSED(9000, 5000)), LOCK(HELD(a)), "resumed pause 10000"),
    ROW("resumed, and never used", LOCK(PAUSED(9000, 5000)), NONE, "resumed pause 10000"),
    ROW("the pause is over",
        LOCK(.pause = {.owner = "pause", .since_ms = 9000, .age_ms = 500, .left_ms = 200}),
        LOCK(HELD(b)), "waiting b 9600, resumed pause 9700, acquired b 9800"),
};

static void print(const struct transitions *found, char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; i < found->count; i++) {
        const struct transition *one = &found->all[i];
        size_t used_up = strlen(out);
        snprintf(out + used_up, size - used_up, "%s%s %s %" PRId64, i ? ", " : "",
                 kind_names[one->kind], one->by ? one->by->owner : "-", one->at_ms);
    }
}

static struct lock_views views_of(const struct lock_view *view)
{
    return (struct lock_views){.views = (struct lock_view *)(uintptr_t)view,
                               .count = view->key != NULL};
}

/* Several locks: each is compared with itself, and all that happened is told in one order. */
static void test_several(void)
{
    struct lock_view before[] = {{.key = "a", HELD(a)}, {.key = "c", WAITED(b)}};
    struct lock_view after[] = {{.key = "b", HELD(b)}, {.key = "c", WAITED(b), HELD(a)}};
    const struct lock_views then = {.views = before, .count = 2},
                            now = {.views = after, .count = 2};
    struct transitions found = {0};
    char text[400];

    transitions_find(&found, &then, &now, NOW, GAP);
    print(&found, text, sizeof text);
    tap_is(text, "acquired a 9000, waiting b 9600, acquired b 9800, released a 10000",
           "several locks", "a b c");
    tap_ok(found.count == 4 && strcmp(found.all[0].key, "c") == 0 &&
               strcmp(found.all[3].key, "a") == 0,
           "each of its own key");
    transitions_free(&found);
}

int main(void)
{
    char text[400];

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct lock_views before = views_of(&rows[i].before),
                                after = views_of(&rows[i].after);
        struct transitions found = {0};
        transitions_find(&found, &before, &after, NOW, GAP);
        print(&found, text, sizeof text);
        tap_is(text, rows[i].wanted, "between two looks:", rows[i].what);
        transitions_free(&found);
    }
    test_several();
    return tap_done();
}
