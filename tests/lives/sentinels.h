/* The Sentinels of a life: each names the server that it takes for the master. */
#pragma once

#include "lives/network.h"

#define SENTINELS 3
/* The number of the first: they are where servers are, too. */
#define SENTINEL_FIRST 50
#define SENTINEL_URL   "sentinel://10.0.0.51:26379,10.0.0.52:26379,10.0.0.53:26379/m"

/* The Sentinels of this life. */
extern struct sentinels_here {
    bool used;
    int master[SENTINELS]; /* as each one says */
    int64_t stale;         /* ns, for which one of them says so longer than the others */
    int away;              /* which one refuses connections; -1: none */
    int64_t told;          /* most of them have told of the latest master since then */
} sentinels_here;

/* In the part of the plan of the replicas, behind these. */
void sentinels_choose(void);
/* The Sentinels learn of another master: one of them later. */
void sentinels_tell(int master);

/* -- for the network --------------------------------------------------------------------------- */

bool sentinel_is_up(int number);
void sentinel_read_from(struct connection *connection);
/* Frees what it has sent of a command. */
void sentinel_forget(struct connection *connection);
