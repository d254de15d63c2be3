/* What several nodes report of their locks, as one list. */
#include "cluster_views.h"

#include "tap.h"

/* Words in the order in which they came: "k" is a lock that is held, "k-" one that is free, "k." one that is waited for,
 * "k?" one that could not be looked at; each with a "!" behind it was asked for. And what is reported. */
static const struct {
    const char *seen, *wanted;
} rows[] = {
    {"", ""},
    {"b a c", "a b c"},
    {"b. a", "a b."},
    {"a- b", "b"},
    {"a-! b", "a- b"},
    {"a?! b?", ""},
    {"a a! a", "a"},
    /* It went from one node to another while they were asked. */
    {"a- a", "a"},
    {"a a-", "a"},
    {"a?! a", "a"},
    {"a-! a", "a"},
    {"a-! a-", "a-"},
    {"a-! a?", "a-"},
};

static void see(struct cluster_views *views, const char *word, size_t length)
{
    static const struct lock_party party;
    struct lock_view view = {.key = ""};
    char key[8] = "";

    memcpy(key, word, 1);
    cluster_views_add(views, key, word[length - 1] == '!');
    view.holders = view.waiters = &party;
    view.holder_count = length == 1 || word[1] == '!';
    view.waiter_count = length > 1 && word[1] == '.';
    if (length == 1 || word[1] != '?')
        cluster_views_set(views, views->count - 1, &view);
}

static void print(void *arg, const struct lock_view *view)
{
    char *out = arg;

    sprintf(out + strlen(out), "%s%s%s", *out ? " " : "", view->key,
            view->holder_count   ? ""
            : view->waiter_count ? "."
                                 : "-");
}

static void test_row(const char *seen, const char *wanted)
{
    struct cluster_views views = {0};
    const char *row = seen;
    char got[100] = "";

    for (size_t length; *seen; seen += length + (seen[length] == ' ')) {
        length = strcspn(seen, " ");
        see(&views, seen, length);
    }
    cluster_views_report(&views, print, got);
    tap_is(got, wanted, "cluster_views_report", row);
    cluster_views_free(&views);
}

static void test_forgetting(void)
{
    struct cluster_views views = {0};
    char got[100] = "";

    see(&views, "a", 1);
    see(&views, "b!", 2);
    see(&views, "c", 1);
    cluster_views_forget(&views);
    cluster_views_report(&views, print, got);
    tap_ok(views.count == 1 && !*got, "forgotten: all but that one was asked for");
    cluster_views_free(&views);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_row(rows[i].seen, rows[i].wanted);
    test_forgetting();
    return tap_done();
}
