#include "store/views.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lock/key.h"
#include "store/store.h"

/* Returns a copy of "count" elements of "size" bytes each, which the caller frees; NULL for 0. */
static const void *copy_array(const void *array, size_t count, size_t size)
{
    if (count == 0)
        return NULL;
    return memcpy(mem_zeroed(count * size), array, count * size);
}

void lock_views_add(struct lock_views *views, const struct lock_view *view)
{
    struct lock_view copy = *view;

    copy.key = mem_strdup(view->key);
    copy.holders = copy_array(view->holders, view->holder_count, sizeof *view->holders);
    copy.waiters = copy_array(view->waiters, view->waiter_count, sizeof *view->waiters);
    copy.runs = copy_array(view->runs, view->run_count, sizeof *view->runs);
    copy.misfit = view->misfit ? mem_strdup(view->misfit) : NULL;
    *MEM_APPEND(views->views, views->count) = copy;
}

void lock_views_add_waiters(struct lock_views *views, const struct lock_view *more)
{
    struct lock_view *view = views->views;
    size_t count = view->waiter_count + more->waiter_count;
    struct lock_party *waiters =
        mem_checked(realloc((void *)(uintptr_t)view->waiters, (count + 1) * sizeof *view->waiters));

    if (more->waiter_count > 0)
        memcpy(waiters + view->waiter_count, more->waiters, more->waiter_count * sizeof *waiters);
    view->waiters = waiters;
    view->waiter_count = count;
}

/* Puts the waiters in the order of their turns; those of one turn stay in their order. */
static void order_waiters(struct lock_view *view)
{
    size_t count = view->waiter_count, ordered = 0;
    struct lock_party *waiters = mem_zeroed((count + 1) * sizeof *waiters);

    for (unsigned turn = 0; turn <= LOCK_TURN_LAST; turn++) {
        for (size_t i = 0; i < count; i++) {
            if (view->waiters[i].turn == turn)
                waiters[ordered++] = view->waiters[i];
        }
    }
    free((void *)(uintptr_t)view->waiters);
    view->waiters = waiters;
    view->waiter_count = ordered;
}

void lock_views_order_waiters(struct lock_views *views)
{
    for (size_t i = 0; i < views->count; i++) {
        const struct lock_view *view = &views->views[i];
        bool in_order = true;
        for (size_t n = 1; n < view->waiter_count && in_order; n++)
            in_order = view->waiters[n - 1].turn <= view->waiters[n].turn;
        if (!in_order)
            order_waiters(&views->views[i]);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct lock_view *left = a, *right = b;

    return strcmp(left->key, right->key);
}

void lock_views_sort(struct lock_views *views)
{
    if (views->count > 0)
        qsort(views->views, views->count, sizeof *views->views, by_key);
}

/* Frees what a view of a list points to: each view there has copies of its own. */
static void drop_view(const struct lock_view *view)
{
    free((void *)(uintptr_t)view->key);
    free((void *)(uintptr_t)view->holders);
    free((void *)(uintptr_t)view->waiters);
    free((void *)(uintptr_t)view->runs);
    free((void *)(uintptr_t)view->misfit);
}

void lock_views_remove(struct lock_views *views, const char *key)
{
    size_t kept = 0;

    for (size_t i = 0; i < views->count; i++)
        if (strcmp(views->views[i].key, key) == 0)
            drop_view(&views->views[i]);
        else
            views->views[kept++] = views->views[i];
    views->count = kept;
}

void lock_views_free(struct lock_views *views)
{
    for (size_t i = 0; i < views->count; i++)
        drop_view(&views->views[i]);
    free(views->views);
    *views = (struct lock_views){0};
}

bool survey_names(const struct survey_request *request, const char *key)
{
    bool named = false;

    for (size_t i = 0; i < request->pattern_count && !named; i++) {
        if (key_is_glob(request->patterns[i]))
            continue;
        char *name = key_from_pattern(request->patterns[i]);
        named = strcmp(name, key) == 0;
        free(name);
    }
    return named;
}

bool lock_views_match(const struct lock_views *views, const char *glob)
{
    for (size_t i = 0; i < views->count; i++)
        if (fnmatch(glob, views->views[i].key, 0) == 0)
            return true;
    return false;
}

bool survey_wants(const struct survey_request *request, const char *key)
{
    for (size_t i = 0; i < request->pattern_count; i++)
        if (fnmatch(request->patterns[i], key, 0) == 0)
            return true;
    return request->pattern_count == 0;
}

/* Whether the lock is held, waited for or paused, or the latch exists. */
static bool is_in_use(const struct lock_view *view)
{
    return view->holder_count || view->waiter_count || view->pause.owner[0] || view->latch.number;
}

bool survey_reports(const struct survey_request *request, const struct lock_view *view)
{
    return request->idle || view->misfit || is_in_use(view) || survey_names(request, view->key);
}

struct lock_views lock_views_of_key(const struct lock_views *views, size_t from)
{
    size_t end = from + 1;

    while (end < views->count && strcmp(views->views[end].key, views->views[from].key) == 0)
        end++;
    return (struct lock_views){&views->views[from], end - from};
}

void lock_views_report(struct lock_views *views, const struct survey_request *request)
{
    struct lock_views same;

    lock_views_sort(views);
    for (size_t i = 0; i < views->count; i += same.count) {
        same = lock_views_of_key(views, i);
        /* A key that moves from one server to another while they are asked may have been seen at
         * both, and may be free where it no longer is. */
        const struct lock_view *view = same.views;
        for (size_t n = 1; n < same.count && !is_in_use(view); n++)
            if (is_in_use(&same.views[n]))
                view = &same.views[n];
        if (survey_reports(request, view))
            request->each(request->each_arg, view);
    }
}
