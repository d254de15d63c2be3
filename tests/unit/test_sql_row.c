/* Locks as rows of a database: their text, and who may have one. And the frames in which drivers
 * are spoken to. */
#include "store/sql/mirror.h"
#include "store/sql/row.h"
#include "store/sql/swap.h"
#include "store/sql/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define A     "aaaaaaaa-0000-4000-8000-000000000000"
#define B     "bbbbbbbb-0000-4000-8000-000000000000"
#define C     "cccccccc-0000-4000-8000-000000000000"
#define LEASE (30000 * US_PER_MS)
#define NOW   1000000

static struct sql_claim claim(const char *owner, enum lock_mode mode, unsigned limit)
{
    return (struct sql_claim){
        .owner = owner, .who = "h u 1 c -", .mode = mode, .limit = limit, .lease = LEASE};
}

static void take(struct sql_row *row, const char *owner, enum lock_mode mode, unsigned limit)
{
    struct sql_claim wanted = claim(owner, mode, limit);

    sql_row_take(row, &wanted, NOW);
}

static bool is_blocked(const struct sql_row *row, const char *owner, enum lock_mode mode,
                       unsigned limit)
{
    struct sql_claim wanted = claim(owner, mode, limit);
    int64_t count, till;

    return sql_row_is_blocked(row, &wanted, &count, &till);
}

static bool is_misfit(const struct sql_row *row, const char *owner, enum lock_mode mode,
                      unsigned limit)
{
    struct sql_claim wanted = claim(owner, mode, limit);
    char why[256];

    return sql_row_is_misfit(row, &wanted, why, sizeof why);
}

/* Whoever keeps it out is "by"; NULL: nobody does. */
static bool blocks(const struct sql_row *row, const char *by, const char *owner,
                   enum lock_mode mode, unsigned limit)
{
    struct sql_claim wanted = claim(owner, mode, limit);
    const struct sql_holder *blocker = sql_row_blocker(row, &wanted);

    return by ? blocker && strcmp(blocker->owner, by) == 0 : !blocker;
}

static void test_text(void)
{
    static const char *const damaged[] = {"",
                                          "rlock/1",
                                          "rlock/1 ",
                                          "rlock/1 5",
                                          "rlock/1 -5\n",
                                          "rlock/2 5\n",
                                          "rlock/1 5\nx",
                                          "rlock/1 5\n1 2 3 4 q 0 0 o w\n",
                                          "rlock/1 5\n1 2 3 4 x 0 0 o w",
                                          "rlock/1 5\n1 2 3 4 x 0 0  w\n",
                                          "rlock/1 5\n99999999999999999999 2 3 4 x 0 0 o w\n",
                                          "rlock/1 5\n1 2 3 4 x 100001 0 o w\n",
                                          "rlock/1 5\nmirror",
                                          "rlock/1 5\nmirror shedlock \n",
                                          "rlock/1 5\nmirror shedlock o h \n",
                                          "rlock/1 5\nmirror shedlock o h n",
                                          "rlock/1 5\n1 2 3\n"};
    struct sql_row row = {0}, again = {0};

    take(&row, A, LOCK_LIMIT, 3);
    take(&row, B, LOCK_LIMIT, 3);
    char *text = sql_row_print(&row);
    tap_ok(sql_row_read(&again, text) && again.fence == row.fence && again.count == 2 &&
               strcmp(again.holders[1].owner, B) == 0 && again.holders[1].slot == 2 &&
               again.holders[1].deadline == NOW + LEASE &&
               strcmp(again.holders[0].who, "h u 1 c -") == 0,
           "what is written is read");
    free(text);
    sql_row_free(&again);
    sql_row_free(&row);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        tap_ok(!sql_row_read(&row, damaged[i]) && row.count == 0, "damaged: %zu", i);
        sql_row_free(&row);
    }
}

static void test_modes(void)
{
    struct sql_row row = {0};

    take(&row, A, LOCK_EXCLUSIVE, 0);
    tap_ok(is_blocked(&row, B, LOCK_EXCLUSIVE, 0) && is_blocked(&row, B, LOCK_SHARED, 0),
           "a writer keeps all others out");
    tap_ok(blocks(&row, A, B, LOCK_SHARED, 0), "and is the one");
    tap_ok(is_misfit(&row, B, LOCK_LIMIT, 2), "a plain lock is no semaphore");
    sql_row_free(&row);

    take(&row, A, LOCK_SHARED, 0);
    tap_ok(!is_blocked(&row, B, LOCK_SHARED, 0) && is_blocked(&row, B, LOCK_EXCLUSIVE, 0),
           "a reader keeps writers out");
    tap_ok(blocks(&row, NULL, B, LOCK_SHARED, 0) && blocks(&row, A, B, LOCK_EXCLUSIVE, 0),
           "and nobody else");
    sql_row_free(&row);

    take(&row, A, LOCK_LIMIT, 2);
    tap_ok(!is_blocked(&row, B, LOCK_LIMIT, 2), "a semaphore has room");
    take(&row, B, LOCK_LIMIT, 2);
    tap_ok(is_blocked(&row, C, LOCK_LIMIT, 2), "until it has none");
    tap_ok(blocks(&row, A, C, LOCK_LIMIT, 2), "one of its holders keeps the next one out");
    tap_ok(is_misfit(&row, C, LOCK_LIMIT, 3) && is_misfit(&row, C, LOCK_SHARED, 0),
           "another limit, or none, does not fit");
    sql_row_remove(&row, sql_row_find(&row, A));
    take(&row, C, LOCK_LIMIT, 2);
    tap_ok(sql_row_find(&row, C)->slot == 1, "a slot that was given back is the next one's");
    sql_row_free(&row);
}

static void test_nesting(void)
{
    struct sql_row row = {0};

    take(&row, A, LOCK_EXCLUSIVE, 0);
    tap_ok(!is_blocked(&row, A "." B, LOCK_EXCLUSIVE, 0), "who nests is not kept out");
    take(&row, A "." B, LOCK_EXCLUSIVE, 0);
    tap_ok(sql_row_find(&row, A "." B)->fence == sql_row_find(&row, A)->fence,
           "it has its ancestor's fence");
    tap_ok(is_blocked(&row, A "." C, LOCK_EXCLUSIVE, 0), "two that nest side by side exclude");
    tap_ok(blocks(&row, A "." B, A "." C, LOCK_EXCLUSIVE, 0) &&
               blocks(&row, A, C, LOCK_EXCLUSIVE, 0),
           "the one beside it does, and of all others the outer one");
    tap_ok(!is_blocked(&row, A "." B "." C, LOCK_SHARED, 0), "not so one within the other");
    tap_ok(is_blocked(&row, C, LOCK_SHARED, 0), "others are kept out");
    sql_row_remove(&row, sql_row_find(&row, A));
    tap_ok(is_blocked(&row, C, LOCK_SHARED, 0), "and still are when the outer one has left");
    sql_row_free(&row);

    take(&row, A, LOCK_SHARED, 0);
    tap_ok(is_misfit(&row, A "." B, LOCK_EXCLUSIVE, 0),
           "a writer in a reader would wait for itself");
    sql_row_free(&row);
}

static void test_leases(void)
{
    struct sql_row row = {0};

    take(&row, A, LOCK_EXCLUSIVE, 0);
    tap_ok(!sql_row_clean(&row, NOW + LEASE - 1), "nothing to cut");
    tap_ok(row.count == 1, "a lease lasts until its end");
    uint64_t fence = row.fence;
    sql_row_clean(&row, NOW + LEASE);
    tap_ok(row.count == 0, "and not longer");
    take(&row, B, LOCK_EXCLUSIVE, 0);
    tap_ok(row.fence > fence, "fences grow, whatever the clock does");
    tap_ok(!sql_row_clean(&row, NOW - 1) && sql_row_clean(&row, NOW - 2 * LEASE) &&
               !sql_row_clean(&row, NOW - 2 * LEASE),
           "a lease is cut once, and not worth it for a moment");
    tap_ok(sql_row_find(&row, B)->deadline == NOW - LEASE, "a clock that was set back: one lease");
    sql_row_keep(sql_row_find(&row, B), 2 * LEASE, NOW, "kept=1");
    tap_ok(sql_row_find(&row, B)->deadline == NOW + 2 * LEASE &&
               sql_row_party(&row, sql_row_find(&row, B), NOW).kept,
           "a lock that is kept");
    sql_row_free(&row);
}

static void receive(struct wire_in *in, const char *bytes, size_t size)
{
    size_t room;
    char *to = wire_room(in, &room);

    memcpy(to, bytes, size);
    wire_received(in, size);
}

static void test_frames(void)
{
    struct wire_out out = {0};
    struct wire_in in = {0};
    struct wire_frame frame;
    const char *text;
    int64_t number;
    bool early = false;

    wire_begin(&out, WIRE_STATEMENT);
    wire_number(&out, 17);
    wire_text(&out, "SELECT 1");
    tap_ok(wire_end(&out), "a frame is written");
    for (size_t i = 0; i < out.size; i++) {
        early |= wire_next(&in, &frame) != WIRE_MORE;
        receive(&in, out.bytes + i, 1);
    }
    tap_ok(!early && wire_next(&in, &frame) == WIRE_FRAME && frame.type == WIRE_STATEMENT &&
               wire_take_number(&frame, &number) && number == 17 && wire_take(&frame, &text) &&
               strcmp(text, "SELECT 1") == 0 && !wire_take(&frame, &text),
           "and read when its last byte has come");
    receive(&in, "\xff\xff\xff\xff", 4);
    tap_ok(wire_next(&in, &frame) == WIRE_DAMAGED, "one that is too long is damaged");
    in.size = in.taken = 0;
    receive(&in, "\0\0\0\7S\0\0\0\4ab", 11);
    tap_ok(wire_next(&in, &frame) == WIRE_FRAME && !wire_take(&frame, &text),
           "a text does not reach beyond its frame");
    free(in.bytes);
    free(out.bytes);
}

static bool prints_time(int64_t us, bool past, const char *wanted)
{
    struct sql_text text = {.dialect = &sql_mysql};

    sql_mirror_add_time(&text, us, past);
    bool same = tap_same(text.bytes, wanted);
    sql_text_end(&text);
    return same;
}

static void test_mirror(void)
{
    struct sql_claim inner = claim(A "." B, LOCK_EXCLUSIVE, 0), outer = claim(A, LOCK_EXCLUSIVE, 0);
    struct sql_row row = {0}, again = {0};
    char by[SQL_MIRROR_BY_SIZE];

    take(&row, A, LOCK_EXCLUSIVE, 0);
    sql_row_take(&row, &inner, NOW + 5);
    inner.who = "h\xc3\xa9'x u 1 c -";
    sql_row_mirror(&row, &inner, "a name");
    tap_ok(tap_same(row.mirror.family, A) && sql_row_mirrors(&row, A) &&
               sql_row_mirrors(&row, A "." C) && !sql_row_mirrors(&row, B),
           "it belongs to the outermost ancestor and those who nest in it");
    tap_ok(tap_same(sql_mirror_by(&row.mirror, by), "h___x rlock " A), "it has a name of its own");
    tap_ok(sql_row_mirrored_until(&row) == NOW + 5 + LEASE, "it lasts for the longest lease");
    char *text = sql_row_print(&row);
    tap_ok(sql_row_read(&again, text) && again.count == 2 && tap_same(again.mirror.family, A) &&
               tap_same(again.mirror.host, "h___x") && tap_same(again.mirror.name, "a name"),
           "what is written is read");
    free(text);
    sql_row_free(&again);

    sql_row_remove(&row, sql_row_find(&row, A "." B));
    sql_row_remove(&row, sql_row_find(&row, A));
    take(&row, B, LOCK_EXCLUSIVE, 0);
    text = sql_row_print(&row);
    tap_ok(sql_row_mirrored_until(&row) == 0 && sql_row_read(&again, text) &&
               !again.mirror.family && again.count == 1,
           "it ends with its family");
    free(text);
    sql_row_free(&again);
    sql_row_free(&row);

    outer.who = "";
    sql_row_mirror(&row, &outer, "n");
    tap_ok(tap_same(sql_mirror_by(&row.mirror, by), "rlock " A), "without a host");
    sql_row_free(&row);

    tap_ok(
        prints_time(INT64_C(1774751400000001), false, "TIMESTAMP '2026-03-29 02:30:01.000'") &&
            prints_time(INT64_C(1774751400000000), false, "TIMESTAMP '2026-03-29 02:30:00.000'") &&
            prints_time(INT64_C(1774751400123999), true, "TIMESTAMP '2026-03-29 02:30:00.123'"),
        "an end is rounded up, the present down");
}

static bool swaps(const struct sql_dialect *dialect, enum sql_mirror_need need, const char *wanted)
{
    struct sql_claim wants = claim(A, LOCK_EXCLUSIVE, 0);
    struct sql_reading reading = {.now = NOW};
    struct sql_text text = {.dialect = dialect};
    const char *key = "k";

    sql_reading_begin(&reading, "p", &key, 1);
    reading.places->row.version = 7;
    sql_row_take(&reading.places->row, &wants, NOW);
    sql_row_mirror(&reading.places->row, &wants, "n");
    bool found = sql_swap(&text, &reading, A, need) && strstr(text.bytes, wanted);
    sql_text_end(&text);
    sql_reading_free(&reading);
    return found;
}

static void test_swap(void)
{
    tap_ok(
        swaps(&sql_mysql, MIRROR_FREE, " AS l0 JOIN shedlock AS m0 ON m0.name = _utf8mb4 x'6e'") &&
            swaps(&sql_mysql, MIRROR_FREE, " OR m0.lock_until <= UTC_TIMESTAMP(3)) SET") &&
            swaps(&sql_mysql, MIRROR_FREE, " AND l0.version = 7"),
        "MySQL: taken in one statement, where it is free or ours");
    tap_ok(swaps(&sql_mysql, MIRROR_OURS, " AS l0 JOIN shedlock AS m0") &&
               !swaps(&sql_mysql, MIRROR_OURS, " OR ") &&
               !swaps(&sql_mysql, MIRROR_OURS, "locked_at"),
           "MySQL: renewed where it is ours");
    tap_ok(swaps(&sql_mysql, MIRROR_ANY, " AS l0 LEFT JOIN shedlock AS m0"),
           "MySQL: given back whoever has it");
    tap_ok(
        swaps(&sql_postgresql, MIRROR_FREE, "WITH t0 AS (UPDATE shedlock AS m0 SET") &&
            swaps(&sql_postgresql, MIRROR_FREE, ", 8, CASE WHEN EXISTS (SELECT 1 FROM t0) THEN") &&
            swaps(&sql_postgresql, MIRROR_OURS, "CASE WHEN EXISTS (SELECT 1 FROM t0)") &&
            !swaps(&sql_postgresql, MIRROR_OURS, " OR "),
        "PostgreSQL: the same");
    tap_ok(swaps(&sql_postgresql, MIRROR_ANY, "WITH t0 AS") &&
               !swaps(&sql_postgresql, MIRROR_ANY, "EXISTS"),
           "PostgreSQL: given back whoever has it");
}

int main(void)
{
    test_text();
    test_mirror();
    test_swap();
    test_modes();
    test_nesting();
    test_leases();
    test_frames();
    return tap_done();
}
