#include "top/rows.h"

#include "base/mem.h"

/* -- which, and in which order ----------------------------------------------------------------- */

static bool is_in(const char *text, const char *filter)
{
    return strcasestr(text, filter) != NULL;
}

/* Whether one of the words that the screen shows has the filter in it. */
static bool party_matches(const struct lock_party *party, const char *filter)
{
    const struct identity *who = &party->who;

    return is_in(who->host, filter) || is_in(who->user, filter) || is_in(who->command, filter) ||
           is_in(who->label, filter);
}

/* Whether the filter fits the lock. A lock is found by its key and by all that its holders and
 * waiters say of themselves. */
static bool lock_matches(const struct lock_view *lock, const char *filter)
{
    bool found = is_in(lock->key, filter);

    for (size_t i = 0; !found && i < lock->holder_count; i++)
        found = party_matches(&lock->holders[i], filter);
    for (size_t i = 0; !found && i < lock->waiter_count; i++)
        found = party_matches(&lock->waiters[i], filter);
    return found;
}

/* Returns when the first of the parties came, ms by the store's clock; INT64_MAX: not known, or
 * there is none. An age would not do: the ages of two locks are of different moments, and at each
 * look another one of them is the greater. */
static int64_t first_arrival(const struct lock_party *parties, size_t count)
{
    int64_t since = INT64_MAX;

    for (size_t i = 0; i < count; i++)
        if (!parties[i].unread && parties[i].since_ms < since)
            since = parties[i].since_ms;
    return since;
}

/* The value of a comparison for qsort(). */
static int ascending(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* For qsort(), as people count: build-2 comes before build-10. */
static int by_key(const void *left, const void *right)
{
    const struct lock_view *a = left, *b = right;

    return strverscmp(a->key, b->key);
}

/* For qsort(): the lock that has been held for longest comes first. */
static int by_age(const void *left, const void *right)
{
    const struct lock_view *a = left, *b = right;
    int order = ascending(first_arrival(a->holders, a->holder_count),
                          first_arrival(b->holders, b->holder_count));

    return order ? order : by_key(a, b);
}

/* For qsort(): the lock with most waiters comes first. */
static int by_waiters(const void *left, const void *right)
{
    const struct lock_view *a = left, *b = right;
    int order = ascending((int64_t)b->waiter_count, (int64_t)a->waiter_count);

    return order ? order : by_age(a, b);
}

/* For qsort(): locks with waiters come first, by how long they have waited. */
static int by_urgency(const void *left, const void *right)
{
    const struct lock_view *a = left, *b = right;
    int order = (b->waiter_count > 0) - (a->waiter_count > 0);

    if (order == 0)
        order = ascending(first_arrival(a->waiters, a->waiter_count),
                          first_arrival(b->waiters, b->waiter_count));
    return order ? order : by_age(a, b);
}

static int (*const orders[ROWS_ORDERS])(const void *, const void *) = {
    [ROWS_BY_URGENCY] = by_urgency,
    [ROWS_BY_AGE] = by_age,
    [ROWS_BY_WAITERS] = by_waiters,
    [ROWS_BY_KEY] = by_key,
};

/* -- the chosen one ---------------------------------------------------------------------------- */

/* Chooses the row of that number, if there are rows. Its key is kept, so that it stays chosen when
 * rows move. */
static void choose_row(struct rows *rows, size_t number)
{
    rows->chosen = number;
    free(rows->key);
    rows->key = rows->count > 0 ? mem_strdup(rows->locks[number].key) : NULL;
}

/* Returns the row where the chosen lock is now; if it is gone, the one in its place, or the
 * last. */
static size_t find_chosen(const struct rows *rows)
{
    for (size_t i = 0; rows->key && i < rows->count; i++)
        if (strcmp(rows->locks[i].key, rows->key) == 0)
            return i;
    if (rows->chosen < rows->count)
        return rows->chosen;
    return rows->count > 0 ? rows->count - 1 : 0;
}

void rows_take(struct rows *rows, const struct lock_views *locks)
{
    free(rows->locks);
    rows->locks = mem_zeroed((locks->count + 1) * sizeof *rows->locks);
    rows->count = 0;
    for (size_t i = 0; i < locks->count; i++)
        if (lock_matches(&locks->views[i], rows->filter))
            rows->locks[rows->count++] = locks->views[i];
    qsort(rows->locks, rows->count, sizeof *rows->locks, orders[rows->order]);
    choose_row(rows, find_chosen(rows));
}

void rows_move(struct rows *rows, long by)
{
    long to = (long)rows->chosen + by;

    if (rows->count == 0)
        return;
    if (to >= (long)rows->count)
        to = (long)rows->count - 1;
    choose_row(rows, to > 0 ? (size_t)to : 0);
}

void rows_scroll(struct rows *rows, size_t room)
{
    size_t last = rows->count > room ? rows->count - room : 0;

    if (rows->chosen < rows->first)
        rows->first = rows->chosen;
    if (room > 0 && rows->chosen >= rows->first + room)
        rows->first = rows->chosen - room + 1;
    if (rows->first > last)
        rows->first = last;
}

const struct lock_view *rows_chosen(const struct rows *rows)
{
    return rows->count > 0 ? &rows->locks[rows->chosen] : NULL;
}

void rows_free(struct rows *rows)
{
    free(rows->locks);
    free(rows->key);
    *rows = (struct rows){0};
}
