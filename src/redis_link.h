/* A greeted connection to one Redis server, made again whenever it is needed: looks the name up,
 * connects, authenticates, selects the database, makes sure that it is a master, reads its clock.
 * A batch of commands goes out in one write; its replies come back together, or a failure does.
 *
 * A batch that was not answered in time costs the connection: a late reply must never be taken for
 * the next one's. While the connection listens (after a batch with SUBSCRIBE), the next batch ends
 * that first; RESP2 allows nothing else on it. */
#ifndef RLOCK_REDIS_LINK_H
#define RLOCK_REDIS_LINK_H

#include "store.h"

struct redisReply;
struct redis_link;

struct redis_link_events {
    /* The replies of the batch, freed afterwards, or count 0 and why in "failure", an UNKNOWN answer.
     * The next batch may be started from here. */
    void (*done)(void *arg, struct redisReply *const *replies, size_t count,
                 const struct answer *failure);
    /* A message for the channel listened to, or the connection broke while nothing was under way. */
    void (*poked)(void *arg);
};

/* NULL with a message in "fault" where the address cannot be one. */
struct redis_link *redis_link_new(struct loop *loop, const struct store_address *address,
                                  const struct redis_link_events *events, void *arg, char *fault,
                                  size_t size);
void redis_link_free(struct redis_link *link);

/* A lease of "lease" ns depends on this server from the next batch on; 0: not known. */
void redis_link_mind(struct redis_link *link, int64_t lease);
/* Adds one command to the batch being put together. */
void redis_link_add(struct redis_link *link, int argc, const char **argv, const size_t *lengths);
/* Sends the batch, connecting first if need be. One at a time; "done" comes once, at "until" at the
 * latest, never before this returned. replies: how many to wait for. channels: how many the batch
 * subscribes to, if any at its end. */
void redis_link_send(struct redis_link *link, size_t replies, size_t channels, struct moment until);
/* Sends the batch if the connection is up and waits for nothing: the last thing that a link does. */
void redis_link_send_blindly(struct redis_link *link);

/* Connects and greets if need be; "done" follows like that of a batch without replies. */
void redis_link_greet(struct redis_link *link, struct moment until);
bool redis_link_is_up(const struct redis_link *link);

/* As redis_session_node(). */
const char *redis_link_node(const struct redis_link *link);
/* How many replicas the server had when it was greeted; -1: it did not tell. */
int redis_link_replicas(const struct redis_link *link);

/* The server's clock, ms since 1970, at "now", reckoned from its last reading; 0: not known. */
int64_t redis_link_clock(const struct redis_link *link, struct moment now);
void redis_link_set_clock(struct redis_link *link, int64_t ms);

#endif
