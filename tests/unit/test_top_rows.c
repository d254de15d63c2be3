/* The rows of rlock top: their order, the filter, and what is chosen. */
#include "top/rows.h"

#include "tap.h"

/* Locks as words "KEY:AGE:WAIT", KEY without a colon: held for AGE seconds, the first waiter waits
 * for WAIT; 0: none does. The holder's host is h-KEY. */
static void see(struct lock_views *views, const char *words)
{
    lock_views_free(views);
    for (; *words; words += strcspn(words, " "), words += *words == ' ') {
        struct lock_party holder = {.owner = "o"}, waiter = {.owner = "w"};
        char key[16] = "";
        struct lock_view view = {.key = key, .holders = &holder, .waiters = &waiter};
        int age = 0, wait = 0;
        sscanf(words, "%15[^:]:%d:%d", key, &age, &wait);
        snprintf(holder.who.host, sizeof holder.who.host, "h-%s", key);
        holder.since_ms = 1000 - age;
        waiter.since_ms = 1000 - wait;
        holder.age_ms = waiter.age_ms = views->count; /* of different moments: they do not count */
        view.holder_count = age > 0;
        view.waiter_count = wait > 0;
        lock_views_add(views, &view);
    }
    lock_views_sort(views);
}

static const char *print(const struct rows *rows)
{
    static char text[100];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < rows->count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", i ? " " : "",
                                   rows->locks[i].key, i == rows->chosen ? "*" : "");
    return text;
}

/* Rows in each order, as KEY:HOLDERS:WAITERS in "seen", and the chosen one with a star. */
static void test_order(void)
{
    static const struct {
        const char *seen, *filter, *wanted;
        enum rows_order order;
    } table[] = {
        {"", "", "", ROWS_BY_URGENCY},
        {"a:1:0 b:2:0 c:3:0", "", "c* b a", ROWS_BY_URGENCY},
        {"a:1:0 b:1:0", "", "a* b", ROWS_BY_URGENCY},
        {"a:9:0 b:1:1 c:2:5", "", "c* b a", ROWS_BY_URGENCY},
        {"a:1:5 b:3:5 c:0:5", "", "b* a c", ROWS_BY_URGENCY},
        {"a:1:0 b:2:0 c:3:0", "H-B", "b*", ROWS_BY_URGENCY},
        {"a:1:0 b:2:0 c:3:0", "a", "a*", ROWS_BY_URGENCY},
        {"a:1:0 b:2:0 c:3:0", "x", "", ROWS_BY_URGENCY},
        {"a:1:7 b:3:5 c:2:0", "", "b* c a", ROWS_BY_AGE},
        {"a:1:0 b:3:0 c:9:5 d:3:0", "", "c* b d a", ROWS_BY_WAITERS},
        {"b:1:7 a:3:5 c:2:0", "", "a* b c", ROWS_BY_KEY},
        {"b-10:1:0 b-9:1:0 b-1:1:0 a:1:0", "", "a* b-1 b-9 b-10", ROWS_BY_AGE},
        {"b-10:1:0 b-2:1:0 b:1:0", "", "b* b-2 b-10", ROWS_BY_KEY},
    };
    struct lock_views views = {0};

    for (size_t i = 0; i < COUNT(table); i++) {
        struct rows rows = {0};
        see(&views, table[i].seen);
        strcpy(rows.filter, table[i].filter);
        rows.order = table[i].order;
        rows_take(&rows, &views);
        tap_is(print(&rows), table[i].wanted, "rows_take", table[i].seen);
        rows_free(&rows);
    }
    lock_views_free(&views);
}

/* The cursor stays on its KEY when rows move, and on the nearest row when that KEY has gone. */
static void test_choice(void)
{
    struct lock_views views = {0};
    struct rows rows = {0};

    see(&views, "a:4:0 b:3:0 c:2:0 d:1:0");
    rows_take(&rows, &views);
    rows_move(&rows, 2);
    tap_is(print(&rows), "a b c* d", "rows_move", "down");
    see(&views, "a:4:0 b:3:0 c:2:1 d:1:0");
    rows_take(&rows, &views);
    tap_is(print(&rows), "c* a b d", "rows_take", "the chosen one goes up");
    rows_move(&rows, 100);
    tap_is(print(&rows), "c a b d*", "rows_move", "no further than the last");
    see(&views, "a:4:0 b:3:0");
    rows_take(&rows, &views);
    tap_is(print(&rows), "a b*", "rows_take", "the chosen one is gone");
    see(&views, "");
    rows_take(&rows, &views);
    rows_move(&rows, -1);
    tap_is(print(&rows), "", "rows_move", "nothing is there");
    lock_views_free(&views);
    rows_free(&rows);
}

/* The first row of the window, so that the chosen one is in it and no room is left empty. */
static void test_scroll(void)
{
    static const struct {
        size_t count, chosen, first, room;
        const char *wanted;
    } table[] = {
        {10, 0, 0, 4, "0"}, {10, 5, 0, 4, "2"}, {10, 3, 5, 4, "3"}, {10, 9, 6, 4, "6"},
        {10, 9, 6, 8, "2"}, {3, 2, 2, 8, "0"},  {10, 4, 0, 1, "4"}, {0, 0, 3, 4, "0"},
    };

    for (size_t i = 0; i < COUNT(table); i++) {
        struct rows rows = {
            .count = table[i].count, .chosen = table[i].chosen, .first = table[i].first};
        char got[24];
        rows_scroll(&rows, table[i].room);
        snprintf(got, sizeof got, "%zu", rows.first);
        tap_is(got, table[i].wanted, "rows_scroll", table[i].wanted);
    }
}

int main(void)
{
    test_order();
    test_choice();
    test_scroll();
    return tap_done();
}
