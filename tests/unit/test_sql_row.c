/* Locks as rows of a database: their text, and who may have one. And the frames in which drivers
 * are spoken to. */
#include "store/sql/row.h"
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
        tap_ok(!sql_row_read(&row, damaged[i]), "damaged: %zu", i);
        sql_row_free(&row);
    }
}

static void test_modes(void)
{
    struct sql_row row = {0};

    take(&row, A, LOCK_EXCLUSIVE, 0);
    tap_ok(is_blocked(&row, B, LOCK_EXCLUSIVE, 0) && is_blocked(&row, B, LOCK_SHARED, 0),
           "a writer keeps all others out");
    tap_ok(is_misfit(&row, B, LOCK_LIMIT, 2), "a plain lock is no semaphore");
    sql_row_free(&row);

    take(&row, A, LOCK_SHARED, 0);
    tap_ok(!is_blocked(&row, B, LOCK_SHARED, 0) && is_blocked(&row, B, LOCK_EXCLUSIVE, 0),
           "a reader keeps writers out");
    sql_row_free(&row);

    take(&row, A, LOCK_LIMIT, 2);
    tap_ok(!is_blocked(&row, B, LOCK_LIMIT, 2), "a semaphore has room");
    take(&row, B, LOCK_LIMIT, 2);
    tap_ok(is_blocked(&row, C, LOCK_LIMIT, 2), "until it has none");
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
    sql_row_clean(&row, NOW + LEASE - 1);
    tap_ok(row.count == 1, "a lease lasts until its end");
    uint64_t fence = row.fence;
    sql_row_clean(&row, NOW + LEASE);
    tap_ok(row.count == 0, "and not longer");
    take(&row, B, LOCK_EXCLUSIVE, 0);
    tap_ok(row.fence > fence, "fences grow, whatever the clock does");
    sql_row_clean(&row, NOW - 2 * LEASE);
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

int main(void)
{
    test_text();
    test_modes();
    test_nesting();
    test_leases();
    test_frames();
    return tap_done();
}
