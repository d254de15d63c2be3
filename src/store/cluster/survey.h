/* Surveys of a Redis Cluster: nodes first, then the keys that are not known from there. */
#pragma once

#include "store/cluster/cluster.h"

struct cluster_survey;

/* Starts a VERB_SURVEY, which ends with the operation's "done": every master is asked for its
 * locks, and for a key that is named, the node that has it. Borrows the request. A node that is
 * missing is asked again until "retry_until". */
struct cluster_survey *cluster_survey_start(struct loop *loop, struct cluster *cluster,
                                            const char *prefix, const struct operation *operation,
                                            struct moment retry_until);
/* Also while it is under way. NULL does no harm. */
void cluster_survey_free(struct cluster_survey *survey);
