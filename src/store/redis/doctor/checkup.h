/* Is a Redis server fit to hold locks? */
#pragma once

#include "store/redis/doctor/judge.h"

struct redisReply;

/* Looks at the server of plan->address, one URL; as a record's "check". */
bool redis_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                 size_t size);

/* The same of one of the plan's servers, or of a node that "url" leads to; *facts is what is
 * known of it. Changes nothing there. False with a message in "fault" if the question could not
 * even be asked here. */
bool redis_check_server(const struct checkup_plan *plan, const struct url *url,
                        struct checkup *checkup, struct server_facts *facts, char *fault,
                        size_t size);
/* Adds a server that could not be asked, for that reason. */
void redis_check_none(const struct checkup_plan *plan, const struct url *url,
                      const struct answer *failure, struct checkup *checkup);

/* Each reads one reply; a reply that is an error tells nothing. Pure. */
void redis_facts_hello(struct server_facts *facts, const struct redisReply *reply);
void redis_facts_info(struct server_facts *facts, const struct redisReply *reply);
/* Reads the reply to CONFIG GET of that one setting. */
void redis_facts_setting(struct server_facts *facts, const char *name,
                         const struct redisReply *reply);
