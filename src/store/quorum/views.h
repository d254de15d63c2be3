/* The reports of a quorum's nodes about their locks, merged: the holders by a majority. Pure. */
#pragma once

#include "store/store.h"
#include "store/views.h"

struct quorum_views {
    size_t count; /* of nodes */
    struct lock_views nodes[QUORUM_NODES_MAX];
};

/* Of so many nodes, which have reported nothing yet. */
void quorum_views_begin(struct quorum_views *views, size_t nodes);
void quorum_views_free(struct quorum_views *views);
/* Adds what one node reports; copies it. */
void quorum_views_add(struct quorum_views *views, size_t node, const struct lock_view *view);

/* Whether all would be the same whatever "missing" nodes had to add. */
bool quorum_views_are_clear(struct quorum_views *views, size_t missing);
/* Reports the locks, sorted by key: holders that a majority has, or would have with the missing
 * nodes. Of free locks it reports those that "request" names. */
void quorum_views_report(struct quorum_views *views, size_t missing,
                         const struct survey_request *request);
