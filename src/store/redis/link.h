/* The link to one Redis server: finds the server, connects and greets it (authentication, database,
 * role, clock), and all that again when it is needed again. Where the server may move to another
 * host, the link follows it there.
 *
 * The first write of a connection is the greeting and, if the batch allows it, the batch behind it:
 * the replies to the greeting are judged before those to the batch are believed, and what a wrong
 * server has granted is undone there. */
#ifndef RLOCK_STORE_REDIS_LINK_H
#define RLOCK_STORE_REDIS_LINK_H

#include "base/strbuf.h"
#include "store/store.h"

struct redisReply;
struct redis_greeting;
struct redis_link;

/* A batch of commands, which its owner fills in. */
struct redis_batch {
    enum { BATCH_NONE, BATCH_WAITING, BATCH_SENT } state; /* SENT: it may be done */
    bool ahead;                                           /* it goes out with the greeting */
    int64_t patience;       /* of one that goes ahead: ns for its replies once the greeting is
                             * answered, and it may be sent twice; 0: until "until", once */
    struct strbuf commands; /* encoded; kept while they may have to be sent again */
    struct moment until;
    struct moment sent_at;
    struct redisReply **replies; /* "got" of the "wanted" ones that there is room for */
    size_t wanted, got;
};

/* Frees the replies that have come. */
void redis_batch_drop_replies(struct redis_batch *batch);

struct redis_link_events {
    /* The server has accepted the greeting. */
    void (*up)(void *arg);
    /* The server cannot be reached, or refuses: why, annotated. The link is down. */
    void (*failed)(void *arg, const struct answer *why);
    /* A batch that was sent ahead came to a server that refuses the greeting; all its replies have
     * come. Returns whether that server may have done what was asked for, and adds one command to
     * *undo that undoes it; the reply to that tells whether it did. */
    bool (*misdirected)(void *arg, struct strbuf *undo);
    /* Of a link that is up: a reply, which the callee frees, and the end of the connection. */
    void (*reply)(void *arg, struct redisReply *reply);
    void (*lost)(void *arg, const char *why);
};

/* "batch" is borrowed. Returns NULL with a message in "fault" if the address cannot be one. */
struct redis_link *redis_link_new(struct loop *loop, const struct store_address *address,
                                  struct redis_batch *batch, const struct redis_link_events *events,
                                  void *arg, char *fault, size_t size);
void redis_link_free(struct redis_link *link);

/* Makes each greeting ask the server which one it is: a member of a quorum, which a replica cannot
 * be. To be called before the first connection. */
void redis_link_identify(struct redis_link *link);
/* A lease of "lease" ns depends on this server from now on; 0: not known. */
void redis_link_set_lease(struct redis_link *link, int64_t lease);

/* Starts to connect, for the batch, which is waiting: until its "until", and for the address's time
 * for connecting at most. "up" or "failed" follows, never before this returned. */
void redis_link_start(struct redis_link *link);
/* Sends bytes on a link that is up or detached. */
void redis_link_send(struct redis_link *link, const struct strbuf *bytes);
/* Ends the connection, without an event. */
void redis_link_close(struct redis_link *link);
/* Ends all events. Returns whether there is a connection that something can still be sent on: one
 * that is up, or one that the batch went out on with the greeting. */
bool redis_link_detach(struct redis_link *link);

bool redis_link_is_up(const struct redis_link *link);
/* Whether another host may take the server's place. */
bool redis_link_fails_over(const struct redis_link *link);
/* The replies to the latest greeting. */
const struct redis_greeting *redis_link_greeting(const struct redis_link *link);
/* Returns how long the server took to answer the latest greeting, in ns; 0: none was answered. */
int64_t redis_link_round_trip(const struct redis_link *link);
/* Whether the server, by its reply to ROLE, is still a master. False: why, annotated. */
bool redis_link_is_master(struct redis_link *link, const struct redisReply *role,
                          struct answer *answer);

/* Puts in front of the text of an answer whose it is: the URL, where the server was found, and the
 * user if the server refuses what that user may not do. */
void redis_link_annotate(const struct redis_link *link, struct answer *answer);

#endif
