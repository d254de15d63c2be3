/* One connection that speaks RESP2: it connects, sends commands, and delivers replies in order.
 * hiredis encodes and decodes, stream.h has the socket. User, database and the like are not known
 * here: see store/redis/link.h. */
#ifndef RLOCK_NET_CONN_H
#define RLOCK_NET_CONN_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct endpoint;
struct loop;
struct redisReply;
struct strbuf;
struct tls;

struct conn_events {
    void (*connected)(void *arg);
    /* The callee frees the reply. conn_close() may be called from here. */
    void (*reply)(void *arg, struct redisReply *reply);
    /* Not by conn_close(): refused, reset, ended by the server, not RESP. The connection is closed
     * by then. */
    void (*broken)(void *arg, const char *why);
};

struct conn *conn_new(struct loop *loop, const struct conn_events *events, void *arg);
void conn_free(struct conn *conn);

/* Starts to connect, over TLS to "host" where tls is not NULL; "connected" or "broken" follows,
 * never before this returned. -1 with errno. */
int conn_open(struct conn *conn, const struct endpoint *to, struct tls *tls, const char *host);
/* The same of a copy of "fd", a socket that is connected to a program of this host. */
int conn_adopt(struct conn *conn, int fd);
/* Drops the connection, what was queued and what was not answered. Harmless if it is closed. */
void conn_close(struct conn *conn);

/* Whether it broke because the other end speaks another protocol, or cannot be trusted: another
 * attempt is of no use. */
bool conn_is_foreign(const struct conn *conn);

/* The first line of what the other end said in place of RESP; "": it has spoken nothing else. */
const char *conn_foreign_words(const struct conn *conn);

/* Describes what has not come yet, for a caller that gives up waiting. */
const char *conn_overdue(const struct conn *conn);

/* Sends encoded commands, at once or later. The connection must be open. */
void conn_send(struct conn *conn, const char *bytes, size_t size);

/* Appends one command, encoded, to *bytes. lengths may be NULL for strings. */
void conn_encode(struct strbuf *bytes, int argc, const char **argv, const size_t *lengths);

#endif
