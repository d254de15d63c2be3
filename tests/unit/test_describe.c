/* The words for owners, ends of runs and obstacles. */
#include "cli/describe.h"

#include <signal.h>
#include <time.h>

#include "tap.h"

#define SEC  INT64_C(1000)
#define HOUR (3600 * SEC)

#define BUILD .who = {.host = "ci-3", .user = "build", .command = "make", .pid = 4121}
#define GREEN                                                                                      \
    .who = {.host = "ci-3", .user = "build", .command = "make", .pid = 4121, .label = "green"}

/* 02:59:30 in UTC, and kept until 03:05:00. */
#define KEPT  .since_ms = 1795402770 * SEC, .age_ms = 30 * SEC, .left_ms = 300 * SEC, .kept = true
#define ENDED .end = {.known = true, .status = 0, .ran_ms = 4213}

#define PARTY(...)                                                                                 \
    &(const struct lock_party)                                                                     \
    {                                                                                              \
        .owner = "o", __VA_ARGS__                                                                  \
    }
#define HELD_BY(count, ...)                                                                        \
    .refusal.refused.holders = (count), .refusal.refused.holder = PARTY(__VA_ARGS__)

static const struct {
    const char *wanted;
    struct answer refusal;
    unsigned limit;
    int64_t later;
    enum describe_detail detail;
} rows[] = {
    ROW(""),
    ROW("held by build@ci-3 pid 4121 (make) for 25m04s", HELD_BY(1, .age_ms = 1504 * SEC, BUILD)),
    ROW("held by build@ci-3 pid 4121 (make) for 3.5s, label green",
        HELD_BY(1, .age_ms = SEC, GREEN), .later = 2500 * NS_PER_MS),
    ROW("held by build@ci-3 (make) for 1s, label green", HELD_BY(1, .age_ms = SEC, GREEN),
        .detail = DESCRIBE_WITHOUT_PID),
    ROW("held by build@ci-3 for 1s, label green", HELD_BY(1, .age_ms = SEC, GREEN),
        .detail = DESCRIBE_WITHOUT_COMMAND),
    ROW("held for 1s", HELD_BY(1, .age_ms = SEC)),
    ROW("held by someone on ci-3 (make) for 1s",
        HELD_BY(1, .age_ms = SEC, .who = {.host = "ci-3", .command = "make"})),
    ROW("held by build@ci-3 (a-name-that-is-longer-than-it-may-be...) for 1s",
        HELD_BY(1, .age_ms = SEC,
                .who = {.host = "ci-3",
                        .user = "build",
                        .command = "a-name-that-is-longer-than-it-may-be\303\274-here"})),
    /* A quorum does not count. */
    ROW("held by build@ci-3 pid 4121 (make) for 1s",
        .refusal.refused.holder = PARTY(.age_ms = SEC, BUILD)),
    ROW("all 2 slots are taken, the oldest by build@ci-3 pid 4121 (make) for 25m00s, label green",
        HELD_BY(2, .mode = LOCK_LIMIT, .age_ms = 1500 * SEC, GREEN), .limit = 2),
    ROW("all 2 slots are taken", .refusal.refused.holders = 2, .limit = 2),
    ROW("all 2 slots are taken, the oldest for 1s", HELD_BY(2, .mode = LOCK_LIMIT, .age_ms = SEC),
        .limit = 2),
    ROW("held by 2 readers, longest by build@ci-3 pid 4121 (make) for 1s",
        HELD_BY(2, .mode = LOCK_SHARED, .age_ms = SEC, BUILD)),
    ROW("held by 3 others, longest by build@ci-3 pid 4121 (make) for 1s",
        HELD_BY(3, .age_ms = SEC, BUILD)),
    ROW("build@ci-3 pid 4121 (make) comes first, waiting for 3s, label green",
        .refusal.refused.first = PARTY(.age_ms = SEC, GREEN), .later = 2 * NS_PER_SEC),
    ROW("someone else comes first, waiting for 1s", .refusal.refused.first = PARTY(.age_ms = SEC)),
    ROW("kept until 03:05; the command ended with 0 after 4.2s; it was run by build@ci-3 (make), "
        "label green",
        HELD_BY(1, KEPT, ENDED, GREEN), .later = NS_PER_SEC),
    ROW("kept until 03:05; the command has ended", HELD_BY(1, KEPT)),
    ROW("all 2 slots are taken, the oldest kept until 03:05; the command ended with 0 after 4.2s; "
        "it was run by build@ci-3 (make)",
        HELD_BY(2, .mode = LOCK_LIMIT, KEPT, ENDED, BUILD), .limit = 2),
    ROW("the server may have lost locks; it grants nothing new for another 5s",
        .refusal.cause = CAUSE_GRACE, .refusal.grace_ms = 7 * SEC, .later = 2 * NS_PER_SEC),
};

/* The words for what is in the way of an acquisition, of each kind of refusal. */
static void test_obstacles(void)
{
    char got[DESCRIBE_OBSTACLE_SIZE];

    for (size_t i = 0; i < COUNT(rows); i++) {
        describe_obstacle(&rows[i].refusal, rows[i].limit, rows[i].later, rows[i].detail, got,
                          sizeof got);
        if (!tap_ok(strcmp(got, rows[i].wanted) == 0, "%s", rows[i].wanted))
            tap_note("got %s", got);
    }
}

/* The longest there is fits, or is cut. */
static void test_longest(void)
{
    static struct lock_party holder = {.owner = "o", KEPT, ENDED};
    const struct answer refusal = {.refused.holders = 2, .refused.holder = &holder};
    struct identity *who = &holder.who;
    char room[DESCRIBE_OBSTACLE_SIZE + 1] = "";

    memset(who->host, 'h', sizeof who->host - 1);
    memset(who->user, 'u', sizeof who->user - 1);
    memset(who->command, 'c', sizeof who->command - 1);
    memset(who->label, 'l', sizeof who->label - 1);
    who->pid = 2147483647;
    for (size_t size = 1; size <= DESCRIBE_OBSTACLE_SIZE; size++) {
        room[size] = '#';
        describe_obstacle(&refusal, 2, 0, DESCRIBE_FULL, room, size);
        if (strlen(room) >= size || room[size] != '#') {
            tap_ok(false, "in %zu bytes", size);
            return;
        }
    }
    tap_ok(strlen(room) < DESCRIBE_OBSTACLE_SIZE - 1, "what is longest is whole");
}

static const struct {
    const char *wanted;
    struct lock_party holder;
} kept[] = {
    {"kept until 03:05; the command ended with 3 after 4.2s",
     {KEPT, .end = {.known = true, .status = 3, .ran_ms = 4213}}},
    {"kept until 03:05; the command died of signal KILL after 1m00s",
     {KEPT, .end = {.known = true, .signal = SIGKILL, .ran_ms = 60 * SEC}}},
    {"kept until 03:05; the command died of signal 64 after 1ms",
     {KEPT, .end = {.known = true, .signal = 64, .ran_ms = 1}}},
    {"kept until 03:05; the command has ended", {KEPT}},
    {"kept until 02:59; the command has ended", {.since_ms = 1795402770 * SEC - 1, .kept = true}},
    {"kept until 03:00; the command has ended", {.since_ms = 1795402770 * SEC, .kept = true}},
    {"kept until 2026-11-24 02:59; the command has ended",
     {.since_ms = 1795402770 * SEC, .age_ms = 1, .left_ms = 24 * HOUR - 30 * SEC - 2}},
    {"kept until 23:59; the command has ended",
     {.since_ms = 1795402770 * SEC, .age_ms = 1, .left_ms = 21 * HOUR - SEC}},
    {"kept until 2026-11-24 00:00; the command has ended",
     {.since_ms = 1795402770 * SEC, .age_ms = 1, .left_ms = 21 * HOUR}},
    {"kept until 2026-11-24 03:00; the command has ended",
     {.since_ms = 1795402770 * SEC, .age_ms = 1, .left_ms = 24 * HOUR}},
    {"kept until ?; the command has ended", {.since_ms = INT64_MAX, .age_ms = 1}},
    {"kept until ?; the command has ended", {.since_ms = INT64_MIN, .age_ms = -1}},
};

/* The words for a lock that is kept for a command which has ended: until when, and how that
 * ended. */
static void test_kept(void)
{
    char got[200];

    for (size_t i = 0; i < COUNT(kept); i++) {
        describe_kept(&kept[i].holder, got, sizeof got);
        if (!tap_ok(strcmp(got, kept[i].wanted) == 0, "%s", kept[i].wanted))
            tap_note("got %s", got);
    }
}

int main(void)
{
    setenv("TZ", "UTC0", 1);
    tzset();
    test_obstacles();
    test_longest();
    test_kept();
    return tap_done();
}
