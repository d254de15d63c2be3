/* A master and its replicas: what is written at it comes to them later, if at all; WAIT waits for
 * them; and one of them may take its place. */
#pragma once

#include "lives/network.h"
#include "store/store.h"

/* How a replica takes the master's place: each time counts from the one before it. */
struct failover {
    int to;           /* which of the others */
    bool lives;       /* the old master is cut off from its replicas; or it ends */
    bool returns;     /* then it is a master still when it returns */
    int64_t promoted; /* behind the end or the cut */
    int64_t named;    /* behind the promotion, as the next two: clients are led to it */
    int64_t followed; /* by the other replica */
    int64_t demoted;  /* the old master is told to be a replica */
};

/* The replication of this life. */
extern struct replication {
    int servers; /* master and replicas; 0: there are none of these */
    int64_t lag; /* ns, of a replica at most */
    bool clocks_differ;
    /* All command lines say so. */
    enum replicas rule;
    unsigned number;
    bool grace;
    int master;   /* the latest that was made one */
    bool moved;   /* it is not the first one */
    bool thinned; /* a replica was away, other than by a failover */
    bool split;   /* two masters may have granted one lock, or the new one have lost it */
} replication;

/* In a part of the plan of its own. */
void replication_choose(void);
bool replication_is_master(int number);
/* Whether --replicas asks for all of them: "If N is the number of all replicas, there is no other
 * replica": rlock-stores(7). */
bool replication_covers(void);

/* -- for the servers --------------------------------------------------------------------------- */

/* A record is written, and then, by that connection (NULL: none), the whole of a unit. */
void replication_note(const char *name);
void replication_commit(int number, struct connection *writer);
/* How many replicas a master has, that it knows of. */
int replication_count(int master);
/* WAIT: blocks the connection, or is answered at once. */
void replication_wait(struct connection *connection, unsigned count, int64_t ns);
/* The server acts again, and may answer. */
void replication_on_thaw(int number);
/* The server is away until then: what it follows, or follows it, begins anew. */
void replication_on_restart(int number, int64_t until);
/* The server was told to drop its data. */
void replication_on_flush(int number);

/* -- faults ------------------------------------------------------------------------------------ */

struct failover replication_choose_failover(int64_t lease);
void replication_fail_over(const struct failover *failover);
