/* What is said on every new connection to a Redis server before anything else: who we are, which database;
 * is it a master (in a Cluster: is it a node of one), what time is it; and of a quorum's member, which server is it. All
 * in one write; the replies are judged one by one. */
#ifndef RLOCK_REDIS_GREETING_H
#define RLOCK_REDIS_GREETING_H

#include "store.h"

struct redisReply;

struct redis_greeting {
    int db;
    bool cluster;               /* it is to be a node of one */
    int step;                   /* whose reply is next */
    int64_t clock_ms;           /* the server's, 0 if it does not tell */
    bool replica;               /* REFUSED for being one */
    bool member;                /* of a quorum */
    char node[STORE_NODE_SIZE]; /* of a member: its run_id */
    int replicas;               /* how many it has, -1 if it does not tell */
};

/* Appends the commands to *bytes, which the caller frees. password: NULL for none. */
void redis_greeting_begin(struct redis_greeting *greeting, const struct url *url,
                          const char *password, bool member, char **bytes, size_t *size);

enum greeting_state { GREETING_GOING, GREETING_DONE, GREETING_REFUSED };

/* Takes the next reply. REFUSED: why, in *answer. */
enum greeting_state redis_greeting_hear(struct redis_greeting *greeting,
                                        const struct redisReply *reply, struct answer *answer);

/* How many replicas a master has, by its reply to ROLE; -1 if that says something else. */
int redis_greeting_replicas(const struct redisReply *role);

#endif
