/* A session with one Redis server: batches of commands, on a connection that is made whenever it is
 * needed: it finds the server, connects and greets it (authentication, database, role, clock).
 * Where the server may move to another host, the session follows it there.
 *
 * A batch goes out in one write; its replies come back together, or a failure does. There is one
 * batch at a time. A batch that is not answered in time costs the connection, and so does a reply
 * too many: a reply must never be taken for that to another batch. While the connection listens
 * (after a batch with SUBSCRIBE), the next batch ends that first; RESP2 allows nothing else on
 * it.
 *
 * The first write of a connection is the greeting and, if the batch allows it, the batch behind it:
 * the replies to the greeting are judged before those to the batch are believed, and what a wrong
 * server has granted is undone there. */
#pragma once

#include "store/redis/greeting.h"

struct redisReply;
struct redis_call;
struct redis_session;

struct redis_session_events {
    /* The replies of the batch, freed afterwards, or count 0 and why in "failure", an UNKNOWN
     * answer. The next batch may be started from here. */
    void (*done)(void *arg, struct redisReply *const *replies, size_t count,
                 const struct answer *failure);
    /* A message came on a channel that is listened to. NULL in its place while a batch is under
     * way, which the server may have read before it sent the message. May be NULL if no batch
     * subscribes. */
    void (*message)(void *arg, const char *message);
    /* The connection broke while no batch was under way; if connections break as soon as they are
     * up, this comes after a pause. May be NULL: the next batch connects again. */
    void (*broken)(void *arg);
    /* A batch that was sent ahead came to a server that refuses the greeting: its replies, freed
     * afterwards. Returns whether that server may have done what was asked for. One command that is
     * added here undoes it there; the reply to that tells whether it did. "done" follows, or the
     * batch is sent to another server. May be NULL if no batch is sent ahead. */
    bool (*misdirected)(void *arg, struct redisReply *const *replies, size_t count);
};

/* Returns NULL with a message in "fault" if the address cannot be one. */
struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size);
/* Ends the connection, and frees the session; "done" is not called for a batch under way. */
void redis_session_free(struct redis_session *session);

/* Makes each greeting ask the server which one it is. To be called before the first connection. */
void redis_session_identify(struct redis_session *session, enum redis_identity identity);
/* A lease of "lease" ns depends on this server from now on; 0: not known. */
void redis_session_set_lease(struct redis_session *session, int64_t lease);

/* Whether there is a connection whose greeting was accepted. */
bool redis_session_is_up(const struct redis_session *session);
/* Ends the connection, without an event. */
void redis_session_close(struct redis_session *session);
/* Returns what the server told in the latest greeting; it changes with the next one. */
const struct redis_greeting *redis_session_greeting(const struct redis_session *session);
/* Returns how long the server took to answer the latest greeting, in ns; 0: none was answered. */
int64_t redis_session_round_trip(const struct redis_session *session);
/* Puts words in front of the text of an answer that tell whose it is: the URL, where the server was
 * found, and the user if that one lacks a right. Sets the hint where it is an address, or a
 * password, that is missing. */
void redis_session_annotate(const struct redis_session *session, struct answer *answer);

/* Makes the server say with the next batch whether it still is a master, if it has told its role in
 * the greeting: a replica refuses to write, but answers reads. To be called before the batch is put
 * together, and sent at once; the batch fails if the server is not a master. */
void redis_session_check_role(struct redis_session *session);
/* Adds one command to the batch being put together. */
void redis_session_add(struct redis_session *session, int argc, const char **argv);
/* Adds a command of these words. */
#define REDIS_SESSION_ADD(session, ...)                                                            \
    redis_session_add(session, sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *),         \
                      (const char *[]){__VA_ARGS__})
/* Adds that call of a script. */
void redis_session_add_call(struct redis_session *session, const struct redis_call *call);
/* Sends the batch, after connecting if needed, which takes the address's time for connecting at
 * most. "done" comes once, at "until" at the latest, never before this returned. replies: how many
 * to wait for; 0: only connects. channels: how many the batch subscribes to, if any at its end. */
void redis_session_send(struct redis_session *session, size_t replies, size_t channels,
                        struct moment until);
/* Sends a batch that may come to a server before that is known to be the right one: on a connection
 * that must be made first it goes out with the greeting. patience: how many ns the server has for
 * the replies once it has answered the greeting; 0: until "until". A batch with patience may be
 * sent twice, and is, if a connection is silent for half of the time. A failure says that what may
 * have been done may be done at any time: the server's clock was not known. */
void redis_session_send_ahead(struct redis_session *session, size_t replies, struct moment until,
                              int64_t patience);
/* Sends the batch if the connection is up, or a batch went ahead on it, and waits for nothing;
 * false: there is no such connection. Ends the batch under way in any case; "done" is not called
 * for it. Nothing but more of the same may be sent afterwards. */
bool redis_session_send_nowait(struct redis_session *session);
/* Sends all that was sent in this way once more, behind the batch. */
void redis_session_repeat_nowait(struct redis_session *session);

/* Puts into *expiry, which is zeroed, when the certificates of the connection end, which must be
 * up; without TLS nothing (net/stream.h). */
void redis_session_expiry(const struct redis_session *session, struct tls_expiry *expiry);
/* Returns when the latest batch went out. */
struct moment redis_session_sent_at(const struct redis_session *session);
/* Returns whether the latest batch has gone out on two connections: it may be done on both. */
bool redis_session_sent_twice(const struct redis_session *session);
/* Returns the server's clock at "now", in ms since 1970, reckoned from its last reading; 0: not
 * known. */
int64_t redis_session_clock(const struct redis_session *session, struct moment now);
/* Notes a reading of the server's clock, which came just now, in ms since 1970. */
void redis_session_set_clock(struct redis_session *session, int64_t ms);
