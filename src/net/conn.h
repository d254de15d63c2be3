/* A stream that speaks RESP2: it delivers replies in order. hiredis encodes and decodes. User,
 * database and the like are not known here: see store/redis/session.h. */
#pragma once

#include "net/stream.h"

struct redisReply;
struct strbuf;

struct conn_events {
    void (*connected)(void *arg);
    /* The callee frees the reply. conn_close() may be called from here. */
    void (*reply)(void *arg, struct redisReply *reply);
    /* The connection has ended as a stream does, or the other end does not speak RESP. */
    void (*broken)(void *arg, const char *why);
};

struct conn {
    struct stream *stream; /* which the owner opens, and sends on; conn_close() closes it */
    char foreign[200];     /* the first line of what came in place of RESP; "": nothing else came */
    const struct conn_events *events;
    void *arg;
    struct redisReader *reader; /* NULL: not connected */
    size_t unread;              /* bytes since the latest whole reply */
    unsigned generation;        /* counts closes: a callback may end what is being read */
};

/* A connection that is closed: the owner opens its stream. events: borrowed. */
struct conn *conn_new(struct loop *loop, const struct conn_events *events, void *arg);
void conn_free(struct conn *conn);
/* Drops the connection, what was queued and what was not answered. Harmless if it is closed. */
void conn_close(struct conn *conn);

/* Appends one command, encoded, to *bytes. */
void conn_encode(struct strbuf *bytes, int argc, const char **argv);
