/* A session with one Redis server: the server is found, connected to and greeted (authentication,
 * database, role, clock), and all that again whenever it is needed. Where the server may move to
 * another host, the session follows it there.
 *
 * What is asked goes out as a batch of commands, in one write; its replies come back together, or
 * a failure does. One batch at a time. A batch that was not answered in time costs the connection,
 * and so does a reply too many: a reply must never be taken for the next one's. While the
 * connection listens (after a batch with SUBSCRIBE), the next batch ends that first; RESP2 allows
 * nothing else on it.
 *
 * The first write of a connection is the greeting and, if that may be, the batch behind it: what
 * the greeting says is judged before the replies to the batch are believed, and what was granted on
 * a server that is not the right one is taken back there. */
#ifndef RLOCK_STORE_REDIS_SESSION_H
#define RLOCK_STORE_REDIS_SESSION_H

#include "store/store.h"

struct redisReply;
struct redis_session;

struct redis_session_events {
    /* The replies of the batch, freed afterwards, or count 0 and why in "failure", an UNKNOWN
     * answer. The next batch may be started from here. */
    void (*done)(void *arg, struct redisReply *const *replies, size_t count,
                 const struct answer *failure);
    /* A message came on a channel that is listened to; NULL in its place while a batch is under
     * way, which may have been sent before what the message is about. NULL: no batch subscribes to
     * any. */
    void (*heard)(void *arg, const char *message);
    /* The connection broke while nothing was under way; where connections break as soon as they are
     * there, after a pause. */
    void (*poked)(void *arg);
    /* A batch that was sent ahead came to a server that refuses the greeting: its replies, freed
     * afterwards. Returns whether that server may have done what was asked for. One command that is
     * added here takes it back there; whether it did, its reply tells. "done" follows, or the batch
     * is sent to another server. NULL where no batch is sent ahead. */
    bool (*astray)(void *arg, struct redisReply *const *replies, size_t count);
};

/* NULL with a message in "fault" where the address cannot be one. */
struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size);
void redis_session_free(struct redis_session *session);

/* Has the server asked which one it is, in every greeting: one of a quorum, which a replica cannot
 * be. To be called before the first batch. */
void redis_session_identify(struct redis_session *session);
/* A lease of "lease" ns depends on this server from the next batch on; 0: not known. */
void redis_session_mind(struct redis_session *session, int64_t lease);

/* Has the server say with the next batch whether it is a master still, if it has said so when it
 * was greeted: a replica refuses to write, but answers what only reads. To be called before the
 * batch is put together, and sent at once; it fails where the server is none. */
void redis_session_verify(struct redis_session *session);
/* Adds one command to the batch being put together; lengths: NULL where all words are strings. */
void redis_session_add(struct redis_session *session, int argc, const char **argv,
                       const size_t *lengths);
/* Sends the batch, connecting first if need be, which takes the address's time for connecting at
 * most. "done" comes once, at "until" at the latest, never before this returned. replies: how many
 * to wait for. channels: how many the batch subscribes to, if any at its end. */
void redis_session_send(struct redis_session *session, size_t replies, size_t channels,
                        struct moment until);
/* The same for a batch that may come to a server before that is known to be the right one: on a
 * connection that is yet to be made it goes out with the greeting. patience: how many ns the server
 * has for the replies once it has answered the greeting; 0: until "until". With patience, the batch
 * may be asked twice, and is, where a connection is silent for half of the time. A failure says
 * that what may have been done may be done at any time: the server's clock was not known. */
void redis_session_send_ahead(struct redis_session *session, size_t replies, struct moment until,
                              int64_t patience);
/* Sends the batch if the connection is up, or a batch went ahead on it, and waits for nothing;
 * false: there is no such connection. Ends what is under way in any case, without its "done".
 * Nothing may be sent afterwards. */
bool redis_session_send_nowait(struct redis_session *session);
/* Connects and greets if need be; "done" follows as that of a batch without replies. */
void redis_session_greet(struct redis_session *session, struct moment until);
/* Ends the connection, between two batches: what it says is not to be relied on. */
void redis_session_drop(struct redis_session *session);

bool redis_session_is_up(const struct redis_session *session);
/* When the latest batch went out. */
struct moment redis_session_sent_at(const struct redis_session *session);
/* How long the server took to answer the latest greeting, ns; 0: it has not answered one yet. */
int64_t redis_session_round_trip(const struct redis_session *session);
/* How many replicas the server had when it was greeted; -1: it did not tell. */
int redis_session_replicas(const struct redis_session *session);
/* Which process of which server is at the other end, or was last, with redis_session_identify();
 * "" before. */
const char *redis_session_node(const struct redis_session *session);
/* The server's clock, ms since 1970, at "now", reckoned from its last reading; 0: not known. */
int64_t redis_session_clock(const struct redis_session *session, struct moment now);
void redis_session_set_clock(struct redis_session *session, int64_t ms);

/* Adds to the text of an answer whose it is: the URL, where the server was found, and the user
 * where the server refused what that user may not do. */
void redis_session_sign(const struct redis_session *session, struct answer *answer);

#endif
