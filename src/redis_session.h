/* A session with one Redis server: it is found, connected to and greeted, and all that again whenever it is
 * needed. Where the server may move to another host, it is followed there. */
#ifndef RLOCK_REDIS_SESSION_H
#define RLOCK_REDIS_SESSION_H

#include "store.h"

struct redisReply;
struct redis_session;

struct redis_session_events {
    /* One of these follows redis_session_start(), later. clock_ms: the server's, 0 if it does not tell. */
    void (*up)(void *arg, int64_t clock_ms);
    void (*failed)(void *arg, const struct answer *why);
    /* While it is up. The callee frees the reply. */
    void (*reply)(void *arg, struct redisReply *reply);
    /* It was up, and is not any more; not by redis_session_end(). */
    void (*broken)(void *arg, const char *why);
};

/* NULL with a message in "fault" where the address cannot be one. */
struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size);
void redis_session_free(struct redis_session *session);

/* A lease of "lease" ns will depend on this server being the right one; 0: not known. */
void redis_session_mind(struct redis_session *session, int64_t lease);
/* Goes there; takes the time for connecting at most, and no longer than "until". */
void redis_session_start(struct redis_session *session, struct moment until);
/* Hangs up, or gives up going there; no callback follows. Harmless if there is nothing to end. */
void redis_session_end(struct redis_session *session);
bool redis_session_is_up(const struct redis_session *session);
/* How many replicas the server had when it was greeted; -1: it did not tell. */
int redis_session_replicas(const struct redis_session *session);

/* Which process of which server is at the other end, or was last, if the address says "member"; "" before. */
const char *redis_session_node(const struct redis_session *session);

/* While it is up. */
void redis_session_send(struct redis_session *session, const char *bytes, size_t size);

/* Whether what a reply says is a reason to look for the server anew: it is a replica, or in a trouble that another
 * one might not be in. Says which in *why. */
bool redis_session_is_over(const struct redis_session *session, const struct redisReply *reply,
                           const char **why);

/* An UNKNOWN answer with the URL, where the server was found, and why. */
struct answer redis_session_failure(const struct redis_session *session, enum cause cause,
                                    const char *why);

#endif
