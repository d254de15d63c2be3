/* The reports of a quorum's nodes about their locks, in one list, merged: holders by a majority.
 * Pure. */
#pragma once

#include "store/store.h"
#include "store/views.h"

/* Whether all would be the same whatever "missing" ones of the nodes had to add. */
bool quorum_views_are_clear(struct lock_views *views, size_t nodes, size_t missing);
/* Reports the locks, sorted by key: holders that a majority has, or would have with the missing
 * nodes. Of free locks it reports those that "request" names. */
void quorum_views_report(struct lock_views *views, size_t nodes, size_t missing,
                         const struct survey_request *request);
