/* Finding and reading many locks on one Redis server: SCAN for globs, then inspect.lua
 * for each key (latch.lua for latches, adjust.lua to mark pauses), a page of them to a round
 * trip. */
#pragma once

#include "store/store.h"

struct redis_session;
struct redis_terms;
struct redisReply;
struct redis_survey;

/* The task of a survey with each lock. */
enum survey_task {
    SURVEY_LOOKS,
    SURVEY_LOOKS_ASKING, /* on a node of a Cluster that is only about to get its slot */
    SURVEY_MARKS,        /* marks it as the pauses of GLOBs say */
};

/* Copies the patterns of the request. terms: have the keys of the pauses of GLOBs, which the
 * request's "paused" is told of, and which unused locks are shown with, and of the server's grace;
 * NULL: none. Borrowed like the prefix. The session carries the survey's batches; its owner hands
 * the replies to redis_survey_hear(). */
struct redis_survey *redis_survey_new(struct redis_session *session, const char *prefix,
                                      const struct redis_terms *terms,
                                      const struct survey_request *request, enum survey_task task);
/* Harmless for NULL. */
void redis_survey_free(struct redis_survey *survey);

/* Whether any lock was marked. */
bool redis_survey_has_marked(const struct redis_survey *survey);

/* Sends the next batch; false: nothing is left. */
bool redis_survey_ask(struct redis_survey *survey, struct moment until);
/* Takes its replies and reports locks. False with the answer that ends the survey. */
bool redis_survey_hear(struct redis_survey *survey, struct redisReply *const *replies, size_t count,
                       struct answer *answer);
