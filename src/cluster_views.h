/* What the nodes of a Redis Cluster report of their locks, made into one list: by key, each once. Pure. */
#ifndef RLOCK_CLUSTER_VIEWS_H
#define RLOCK_CLUSTER_VIEWS_H

#include "lock.h"
#include <stddef.h>

struct cluster_entry {
    char *key;
    bool named;            /* asked for: reported also when it is free */
    struct lock_view view; /* its key NULL: not known yet */
};

struct cluster_views {
    struct cluster_entry *entries;
    size_t count;
};

/* Adds a lock that is still to be looked at. */
void cluster_views_add(struct cluster_views *views, const char *key, bool named);
/* Sets what number i is like; copies it. */
void cluster_views_set(struct cluster_views *views, size_t i, const struct lock_view *view);
/* Forgets all but those that were asked for. */
void cluster_views_forget(struct cluster_views *views);
void cluster_views_free(struct cluster_views *views);

/* Reports those that are known and held or waited for, or asked for. Sorts them. */
void cluster_views_report(struct cluster_views *views,
                          void (*each)(void *arg, const struct lock_view *view), void *arg);

#endif
