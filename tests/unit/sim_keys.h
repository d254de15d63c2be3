/* A lock server that is simulated, for stores above those that take one key at a time, and
 * connections to it, which are such stores. An answer takes up to 5 ms. */
#ifndef SIM_KEYS_H
#define SIM_KEYS_H

#include "chance.h"
#include "fake_loop.h"
#include "store/store.h"

#define SIM_KEYS   4 /* their names are "a" to "d" */
#define SIM_OWNERS 5
#define SIM_LINKS  (8 * SIM_OWNERS) /* connections at a time */

struct sim_link;

/* One key: its holder, and its waiters in the order of arrival. Owners are told
 * apart by their address. */
struct sim_key {
    const char *name;
    const char *holder; /* NULL: none */
    struct sim_place {
        const char *owner;
        struct moment since, until;
    } queue[SIM_OWNERS];
    size_t waiting;
};

struct sim_server {
    struct loop *loop;
    unsigned seed;
    bool has_queue;
    unsigned silent;  /* of 100 answers, so many are lost */
    const char *dead; /* a key whose server does not answer; NULL */
    struct sim_key keys[SIM_KEYS];
    struct sim_link *links[SIM_LINKS];
    const char *fault; /* a wrong request to a store; NULL */
};

/* With queues, and all is answered. */
void sim_server_begin(struct sim_server *server, unsigned seed);
/* All connections have been closed. */
void sim_server_end(struct sim_server *server);

/* A connection. owner: borrowed. */
struct store *sim_connect(struct sim_server *server, const char *owner);
/* Its session has expired: what it held is gone, and others may take it. */
void sim_expire(struct sim_server *server, const char *owner);

struct sim_key *sim_find_key(struct sim_server *server, const char *name);
bool sim_is_queued(struct sim_server *server, const char *name, const char *owner);
/* How many of these keys, up to NULL, the owner holds. */
size_t sim_count_held(struct sim_server *server, const char *const *names, const char *owner);

#endif
