/* The greeting that begins each connection to a Redis server: user and password, the name of the
 * connection, the database; is it a master (in a Cluster: is it a node of one), what is its clock;
 * and where that matters, which process of which server is it. All in one write, with the first
 * batch; the replies are judged one by one. */
#pragma once

#include "store/member.h"

struct redisReply;
struct strbuf;

/* Whether a server has to tell which one it is. */
enum redis_identity {
    IDENTITY_NONE,
    IDENTITY_WANTED, /* a user may lack the right to ask */
    IDENTITY_NEEDED, /* of a quorum's member */
};

struct redis_greeting {
    int db;
    bool named;                    /* the connection gets a name */
    bool cluster;                  /* it must be a node of one */
    int step;                      /* the step whose reply is next */
    int64_t clock_ms;              /* the server's; 0: it does not tell */
    enum redis_identity identity;  /* whether it is asked for that */
    char node[MEMBER_SERVER_SIZE]; /* its run_id; "": it does not tell */
    int replicas;                  /* how many it has, -1 if it does not tell */
    /* The address of a database's server, as its host found it; kept for the next host, in case its
     * name cannot be looked up then. "": not known. */
    char address[48];
    int64_t poll_ms; /* how often a waiter may ask where no message comes; 0: it does not tell */
};

/* Appends the commands to *bytes. password: NULL: none. client: the name of the connection; "":
 * none. */
void redis_greeting_begin(struct redis_greeting *greeting, const struct url *url,
                          const char *password, const char *client, enum redis_identity identity,
                          struct strbuf *bytes);
/* Appends the commands that greet a host, which is told where its database is; the password may be
 * NULL. ms: how long it may take to connect. */
void redis_greeting_begin_host(struct redis_greeting *greeting, const struct store_address *address,
                               const char *password, int64_t ms, struct strbuf *bytes);

enum greeting_state { GREETING_GOING, GREETING_DONE, GREETING_REFUSED };

/* Takes the next reply, which stays the caller's. DONE: it was the last one, and the server will
 * do. REFUSED: it will not; why, in *answer, which is not annotated. */
enum greeting_state redis_greeting_hear(struct redis_greeting *greeting,
                                        const struct redisReply *reply, struct answer *answer);

/* Returns how many replies follow the one that was taken last. */
int redis_greeting_left(const struct redis_greeting *greeting);

/* Whether a reply to ROLE, which may be sent later as well, does not exclude a master. False: why,
 * in *answer. */
bool redis_greeting_is_master(const struct redis_greeting *greeting, const struct redisReply *role,
                              struct answer *answer);

/* Returns how many replicas a master has, by its reply to ROLE; -1: it does not tell. */
int redis_greeting_replicas(const struct redisReply *role);
