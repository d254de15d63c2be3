/* What locks there are in a Redis Cluster: every master is asked for those it has, and each key that is named at the
 * node that has it. */
#ifndef RLOCK_CLUSTER_SURVEY_H
#define RLOCK_CLUSTER_SURVEY_H

#include "store.h"

struct cluster;
struct cluster_survey;

/* Copies the request, borrows the rest. Completes as store_survey() does; a node that is missing is asked again until
 * "patient". */
struct cluster_survey *cluster_survey_start(struct loop *loop, struct cluster *cluster,
                                            const char *prefix,
                                            const struct survey_request *request,
                                            struct moment until, struct moment patient,
                                            store_done *done, void *arg);
/* Also while it is under way. */
void cluster_survey_free(struct cluster_survey *survey);

#endif
