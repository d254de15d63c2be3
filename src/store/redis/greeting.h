/* What is said on every new connection to a Redis server before anything else: who we are, what the
 * connection is called, which database; is it a master (in a Cluster: is it a node of one), what
 * time is it; and of a quorum's member, which server is it. All in one write, with what is asked
 * for first; the replies are judged one by one. */
#ifndef RLOCK_STORE_REDIS_GREETING_H
#define RLOCK_STORE_REDIS_GREETING_H

#include "store/member.h"

struct redisReply;
struct strbuf;

struct redis_greeting {
    int db;
    bool named;                    /* the connection is to be */
    bool cluster;                  /* it is to be a node of one */
    int step;                      /* whose reply is next */
    int64_t clock_ms;              /* the server's, 0 if it does not tell */
    bool replica;                  /* REFUSED for being one */
    bool member;                   /* of a quorum */
    char node[MEMBER_SERVER_SIZE]; /* of a member: its run_id */
    int replicas;                  /* how many it has, -1 if it does not tell */
};

/* Appends the commands to *bytes. password: NULL for none. client: what the
 * connection is called, "" for nothing. */
void redis_greeting_begin(struct redis_greeting *greeting, const struct url *url,
                          const char *password, const char *client, bool member,
                          struct strbuf *bytes);
/* The same for a host, which is told where its database is; the password may be NULL. ms: how long
 * it may take to connect. */
void redis_greeting_begin_host(struct redis_greeting *greeting, const struct store_address *address,
                               const char *password, int64_t ms, struct strbuf *bytes);

enum greeting_state { GREETING_GOING, GREETING_DONE, GREETING_REFUSED };

/* Takes the next reply. REFUSED: why, in *answer. */
enum greeting_state redis_greeting_hear(struct redis_greeting *greeting,
                                        const struct redisReply *reply, struct answer *answer);

/* How many replies follow the one that was taken last. */
int redis_greeting_left(const struct redis_greeting *greeting);

/* Whether a reply to ROLE, which may be asked for later on as well, is not of another server than a
 * master. False: why, in *answer. */
bool redis_greeting_is_master(struct redis_greeting *greeting, const struct redisReply *role,
                              struct answer *answer);

/* How many replicas a master has, by its reply to ROLE; -1 if that says something else. */
int redis_greeting_replicas(const struct redisReply *role);

#endif
