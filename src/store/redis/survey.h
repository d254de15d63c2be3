/* Finding and reading many locks on one Redis server: SCAN where there are globs, then inspect.lua
 * for each key (latch.lua, where it is about latches; adjust.lua, where pauses are to be marked), a
 * page of them to a round trip. */
#ifndef RLOCK_STORE_REDIS_SURVEY_H
#define RLOCK_STORE_REDIS_SURVEY_H

#include "store/store.h"

struct redis_session;
struct redisReply;
struct redis_survey;

/* Copies the request. The session carries the survey's batches; its owner hands replies on. */
struct redis_survey *redis_survey_new(struct redis_session *session, const char *prefix,
                                      const struct survey_request *request);
void redis_survey_free(struct redis_survey *survey);

/* At a Cluster's node: "asking", whether it is only about to get the slot. */
void redis_survey_at_node(struct redis_survey *survey, bool asking);

/* Where the pauses of GLOBs are, which the request's "paused" is told of, and which locks that were
 * never had are shown with. Without this call there are none. */
void redis_survey_pauses(struct redis_survey *survey, const char *list);

/* Instead of looking at the locks, has each of them marked as the pauses of GLOBs say that are
 * there. */
void redis_survey_mark(struct redis_survey *survey);
bool redis_survey_is_marking(const struct redis_survey *survey);
/* Whether any of them was changed. */
bool redis_survey_has_marked(const struct redis_survey *survey);

/* Sends the next batch. False when there is nothing left to ask. */
bool redis_survey_ask(struct redis_survey *survey, struct moment until);
/* Takes its replies, reporting locks. False with the answer that ends the survey. */
bool redis_survey_hear(struct redis_survey *survey, struct redisReply *const *replies, size_t count,
                       struct answer *answer);

#endif
