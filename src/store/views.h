/* Copies of what surveys report of locks and latches (store.h), as a list. */
#pragma once

#include "lock/lock.h"

struct survey_request;

/* All zero: empty. */
struct lock_views {
    struct lock_view *views;
    size_t count;
};

/* Adds a copy of the view, with all that it points to. */
void lock_views_add(struct lock_views *views, const struct lock_view *view);
/* Puts copies of the waiters of "more" behind those of the first view of the list. */
void lock_views_add_waiters(struct lock_views *views, const struct lock_view *more);
/* Puts the waiters of each view into the order of their turns; equals stay as they are. */
void lock_views_order_waiters(struct lock_views *views);
/* Sorts by key, byte by byte. */
void lock_views_sort(struct lock_views *views);
/* Returns those of one key from that one on, of a list that is sorted; borrowed. */
struct lock_views lock_views_of_key(const struct lock_views *views, size_t from);
/* Whether a GLOB matches one of the keys. */
bool lock_views_match(const struct lock_views *views, const char *glob);
/* Reports them to the request's "each", sorted by key, each key once; of those that are not in use,
 * only what the request names, unless it asks for "idle" ones. */
void lock_views_report(struct lock_views *views, const struct survey_request *request);
/* Removes the views of that key. */
void lock_views_remove(struct lock_views *views, const char *key);
/* Empties it. */
void lock_views_free(struct lock_views *views);

/* Whether a pattern of the request is this key, written without wildcards. */
bool survey_names(const struct survey_request *request, const char *key);
/* Whether one of its patterns fits the key, or it has none. */
bool survey_wants(const struct survey_request *request, const char *key);
/* Whether a lock is reported as it is: in use, or free and wanted, be it by name. */
bool survey_reports(const struct survey_request *request, const struct lock_view *view);
