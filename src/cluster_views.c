/* Locks as several nodes report them. */
#include "cluster_views.h"

#include "mem.h"

static struct lock_party *copy_parties(const struct lock_party *parties, size_t count)
{
    struct lock_party *copy = mem_zeroed((count + 1) * sizeof *copy);

    if (count > 0)
        memcpy(copy, parties, count * sizeof *copy);
    return copy;
}

static void drop_view(struct cluster_entry *entry)
{
    free((void *)(uintptr_t)entry->view.holders);
    free((void *)(uintptr_t)entry->view.waiters);
    entry->view = (struct lock_view){0};
}

void cluster_views_add(struct cluster_views *views, const char *key, bool named)
{
    views->entries =
        mem_checked(realloc(views->entries, (views->count + 1) * sizeof *views->entries));
    views->entries[views->count++] = (struct cluster_entry){.key = mem_strdup(key), .named = named};
}

void cluster_views_set(struct cluster_views *views, size_t i, const struct lock_view *view)
{
    struct cluster_entry *entry = &views->entries[i];

    drop_view(entry);
    entry->view = *view;
    entry->view.key = entry->key;
    entry->view.holders = copy_parties(view->holders, view->holder_count);
    entry->view.waiters = copy_parties(view->waiters, view->waiter_count);
}

void cluster_views_forget(struct cluster_views *views)
{
    size_t kept = 0;

    for (size_t i = 0; i < views->count; i++) {
        drop_view(&views->entries[i]);
        if (views->entries[i].named)
            views->entries[kept++] = views->entries[i];
        else
            free(views->entries[i].key);
    }
    views->count = kept;
}

void cluster_views_free(struct cluster_views *views)
{
    for (size_t i = 0; i < views->count; i++) {
        drop_view(&views->entries[i]);
        free(views->entries[i].key);
    }
    free(views->entries);
    *views = (struct cluster_views){0};
}

static bool is_in_use(const struct lock_view *view)
{
    return view->holder_count || view->waiter_count;
}

/* Of a key that is there twice, first the one to be reported: a key that moves from one node to another while they are
 * asked may have been seen at both, and may be free where it is no more. */
static int compare(const void *a, const void *b)
{
    const struct cluster_entry *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    if (order == 0)
        order = (int)is_in_use(&right->view) - (int)is_in_use(&left->view);
    return order ? order : (int)right->named - (int)left->named;
}

void cluster_views_report(struct cluster_views *views,
                          void (*each)(void *arg, const struct lock_view *view), void *arg)
{
    const char *last = NULL;

    if (views->count > 0)
        qsort(views->entries, views->count, sizeof *views->entries, compare);
    for (size_t i = 0; i < views->count; i++) {
        const struct cluster_entry *entry = &views->entries[i];
        bool wanted = entry->view.key && (entry->named || is_in_use(&entry->view));
        if (wanted && (!last || strcmp(last, entry->key) != 0)) {
            last = entry->key;
            each(arg, &entry->view);
        }
    }
}
