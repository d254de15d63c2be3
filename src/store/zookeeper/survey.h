/* A look at locks. */
#pragma once

#include "store/zookeeper/operation.h"

/* Performs a survey, the operation under way. */
void zk_survey(struct zk_store *store, const struct survey_request *request);
/* Forgets what the survey under way has found. */
void zk_survey_clear(struct zk_store *store);
