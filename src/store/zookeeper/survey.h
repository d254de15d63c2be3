/* Looks at locks in a ZooKeeper ensemble: which there are, and who holds them and waits for them.
 * Requests are put into a batch, whose replies are taken, until there is nothing left to ask. */
#ifndef RLOCK_STORE_ZOOKEEPER_SURVEY_H
#define RLOCK_STORE_ZOOKEEPER_SURVEY_H

#include "store/store.h"
#include "store/zookeeper/message.h"

struct zk_survey;

/* The first requests are in the batch then. folder: the node that all locks are children of.
 * Borrows the request. */
struct zk_survey *zk_survey_new(const char *folder, const struct survey_request *request,
                                struct zk_batch *batch);
/* NULL does no harm. */
void zk_survey_free(struct zk_survey *survey);

/* Takes the replies to the latest requests, and puts further ones into the batch, which stays empty
 * when all is known. Returns an error of the server's, or ZK_OK. */
int zk_survey_take(struct zk_survey *survey, const struct zk_reply *replies,
                   struct zk_batch *batch);

/* Reports all locks. now_ms: the wall clock, since 1970. */
void zk_survey_report(const struct zk_survey *survey, int64_t now_ms);

#endif
