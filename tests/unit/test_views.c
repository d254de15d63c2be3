/* The reports of several servers about their locks, as one list. */
#include "store/views.h"

#include "store/store.h"
#include "tap.h"

/* Words in the order in which they came: "k" is a lock that is held, "k-" one that is free, "k."
 * one that is waited for, "k=" a latch. The patterns of the request. And the report. */
static const struct {
    const char *seen;
    const char *patterns[3];
    const char *wanted;
} rows[] = {
    {"", {NULL}, ""},
    {"", {"a"}, ""},
    {"b a c", {NULL}, "a b c"},
    {"b. a", {NULL}, "a b."},
    {"b= a=", {NULL}, "a= b="},
    {"a- b", {NULL}, "b"},
    {"a- b", {"a"}, "a- b"},
    {"a- b- c-", {"b", "c"}, "b- c-"},
    {"a- b", {"*"}, "b"},
    {"a a", {NULL}, "a"},
    {"a a", {"a"}, "a"},
    {"*- a-", {"\\*"}, "*-"},
    {"*- a-", {"\\*", "a"}, "*- a-"},
    {"\\- a-", {"\\\\"}, "\\-"},
    /* The lock went from one server to another while they were asked. */
    {"a- a", {NULL}, "a"},
    {"a a-", {NULL}, "a"},
    {"a- a", {"a"}, "a"},
    {"a- b a- a= b-", {"a"}, "a= b"},
    {"a- a-", {"a"}, "a-"},
};

static void see(struct lock_views *views, const char *word)
{
    struct lock_party party = {.owner = "o"};
    char key[] = {word[0], '\0'};
    struct lock_view view = {.key = key, .holders = &party, .waiters = &party};

    view.holder_count = word[1] == ' ' || !word[1];
    view.waiter_count = word[1] == '.';
    view.latch.number = word[1] == '=';
    lock_views_add(views, &view);
    memset(&party, 0, sizeof party); /* it was copied */
}

static void print(void *arg, const struct lock_view *view)
{
    char *out = arg;
    bool same = view->holder_count ? strcmp(view->holders->owner, "o") == 0 : true;

    sprintf(out + strlen(out), "%s%s%s", *out ? " " : "", same ? view->key : "?",
            view->holder_count   ? ""
            : view->waiter_count ? "."
            : view->latch.number ? "="
                                 : "-");
}

/* The seen locks that the patterns name are reported, sorted. */
static void test_row(const char *seen, const char *const *patterns, const char *wanted)
{
    struct lock_views views = {0};
    char got[100] = "";
    struct survey_request request = {.patterns = patterns, .each = print, .each_arg = got};

    while (request.pattern_count < 3 && patterns[request.pattern_count])
        request.pattern_count++;
    for (const char *word = seen; *word; word += strcspn(word, " "), word += *word == ' ')
        see(&views, word);
    lock_views_report(&views, &request);
    tap_is(got, wanted, "lock_views_report", seen);
    lock_views_free(&views);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_row(rows[i].seen, rows[i].patterns, rows[i].wanted);
    return tap_done();
}
