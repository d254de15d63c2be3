/* Surveys of a Redis Cluster: every master is asked for the locks that it has, and the node that
 * has a key that is named for that one. */
#ifndef RLOCK_STORE_CLUSTER_SURVEY_H
#define RLOCK_STORE_CLUSTER_SURVEY_H

#include "store/store.h"

struct cluster;
struct cluster_survey;

/* Borrows all of it. Completes as VERB_SURVEY does; a node that is missing is asked again until
 * "retry_until". */
struct cluster_survey *cluster_survey_start(struct loop *loop, struct cluster *cluster,
                                            const char *prefix,
                                            const struct survey_request *request,
                                            struct moment until, struct moment retry_until,
                                            store_done *done, void *arg);
/* Also while it is under way. */
void cluster_survey_free(struct cluster_survey *survey);

#endif
